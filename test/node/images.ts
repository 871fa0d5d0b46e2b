import { commit } from '../../scripts/images/commit.ts'
import { type Image, makeImages } from '../../scripts/images/make.ts'
import { version } from '../../src/cli/version.ts'

/** The images of these sources. @param folder where the archives are put */
export async function images(folder: string): Promise<{ operator: Image; tor: Image }> {
  const made = await makeImages({ folder, version: version(), ...(await commit()) })
  const find = (name: Image['name']): Image => made.find((image) => image.name === name)!
  return { operator: find('postern'), tor: find('postern-tor') }
}
