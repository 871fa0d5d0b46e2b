import { homedir } from 'node:os'
import { join } from 'node:path'
import { ProgramCache, type ProgramSource } from './program-cache.ts'
import { PROGRAMS, type ProgramName, type Programs } from './types.ts'

/** Of k8s.io/kubernetes in go.mod. */
const version = 'v1.37.2'
const [, minor] = version.split('.')
const kubernetes = (name: ProgramName, minutes: number) => ({
  package: `k8s.io/kubernetes/cmd/${name}`,
  check: ['--version'],
  minutes,
})

const source: ProgramSource<ProgramName> = {
  folder: import.meta.dirname,
  files: ['go.mod', 'go.sum', 'coredns/main.go'],
  // Without the version flags the programs call themselves v0.0.0-master, and clients that look at versions err.
  flags: [
    '-trimpath',
    '-buildvcs=false',
    '-ldflags',
    [
      '-s -w',
      `-X k8s.io/component-base/version.gitVersion=${version}`,
      '-X k8s.io/component-base/version.gitMajor=1',
      `-X k8s.io/component-base/version.gitMinor=${minor}`,
      `-X k8s.io/client-go/pkg/version.gitVersion=${version}`,
    ].join(' '),
  ],
  programs: {
    etcd: { package: 'go.etcd.io/etcd/server/v3', check: ['--version'], minutes: 1 },
    'kube-apiserver': kubernetes('kube-apiserver', 8),
    'kube-controller-manager': kubernetes('kube-controller-manager', 1),
    'kube-scheduler': kubernetes('kube-scheduler', 1),
    kubelet: kubernetes('kubelet', 1),
    'kube-proxy': kubernetes('kube-proxy', 1),
    coredns: { package: './coredns', check: ['-version'], minutes: 2 },
  },
}

/** Where built programs and unpacked tools are kept: $POSTERN_TESTBED_CACHE, or below $XDG_CACHE_HOME or ~/.cache. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.POSTERN_TESTBED_CACHE) return env.POSTERN_TESTBED_CACHE
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'postern', 'testbed')
}

/**
 * Builds what is missing or broken of the programs named, and gives the paths of all. About 15 minutes on 2 cores for the
 * first time, below a second later. What it does is told on stderr.
 *
 * @param signal gives up
 * @throws PosternError `TestbedOff`, `GoMissing`, `TestbedBuild`
 */
export function buildPrograms(
  names: readonly ProgramName[] = PROGRAMS,
  signal?: AbortSignal,
): Promise<Programs> {
  const say = (line: string) => void process.stderr.write(`testbed: ${line}\n`)
  return new ProgramCache(source, { root: cacheFolder(), prefix: 'kubernetes-', say }).build(names, signal)
}
