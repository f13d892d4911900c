/** A step of the launcher that did not work. Its message is for the user and says what to do next. */
export class StepFailed extends Error {
  /**
   * @param {string} message
   * @param {number} [exitCode]
   */
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
