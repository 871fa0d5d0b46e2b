/**
 * A function whose result is kept for as long as the object that it follows from: an object that changed is another
 * object. For what is asked for again and again, and is not cheap.
 */
export function once<Subject extends object, Result>(
  make: (subject: Subject) => Result,
): (subject: Subject) => Result {
  const known = new WeakMap<Subject, Result>()
  return (subject) => {
    if (!known.has(subject)) known.set(subject, make(subject))
    return known.get(subject)!
  }
}
