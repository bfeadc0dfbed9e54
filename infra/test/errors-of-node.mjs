/**
 * A test runs in a realm of its own, and the errors that Node itself makes are those of another one: there, `instanceof
 * Error` would be false for a missing file or a refused connection, and the code under test would do other than in
 * production.
 */
const ErrorOfNode = Object.getPrototypeOf(DOMException.prototype).constructor;
const isInstance = Function.prototype[Symbol.hasInstance];

Object.defineProperty(Error, Symbol.hasInstance, {
  value(candidate) {
    return isInstance.call(this, candidate) || (this === Error && isInstance.call(ErrorOfNode, candidate));
  },
});
