/**
 * What was seen cannot happen with a safe backend, however slow the machine: two holders that exclude each other were
 * inside together, a token did not rise, a lock was granted past those who hold it. Every other failure of a case may
 * come from a bound of time that a busy machine missed.
 */
export class SafetyViolation extends Error {
  override readonly name = 'SafetyViolation';
}
