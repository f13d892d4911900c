/**
 * A failure that cannot happen with a safe backend, however slow the machine: two holders that exclude each other were
 * inside together, a token did not rise, or a held lock was granted. Every other failure of a case may come from a time
 * bound that a busy machine missed.
 */
export class SafetyViolation extends Error {
  override readonly name = 'SafetyViolation';
}
