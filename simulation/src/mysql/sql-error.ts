/** An error of the server, as mysql2 gives it: nothing of the statement has happened. */
export class SqlError extends Error {
  override readonly name = 'SqlError';
  readonly errno: number;

  constructor(errno: number, message: string) {
    super(message);
    this.errno = errno;
  }
}
