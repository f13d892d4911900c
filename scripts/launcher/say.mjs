/**
 * One line for the person at the terminal. Always on stderr: stdout belongs to the task and may carry JSON.
 * @param {string} message
 */
export function say(message) {
  process.stderr.write(`${message}\n`);
}
