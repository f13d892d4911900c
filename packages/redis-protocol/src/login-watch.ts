import { NoAnswerError } from '@locks/core/backend';

/** The replies of a server that refuses the login: NOAUTH for a missing password, WRONGPASS for a wrong one. */
const REFUSED = /^(?:NOAUTH|WRONGPASS)\b/;

/**
 * A copy of an error without its command: that of a refused login has the password among its arguments. The error itself stays as it is,
 * since the client gives it to its own listeners too.
 */
function withoutCommand(error: Error): Error {
  if (!('command' in error)) return error;
  const { command: _command, ...kept } = Object.getOwnPropertyDescriptors(error);
  const copy = Object.defineProperties(new Error(error.message), kept);
  return Object.setPrototypeOf(copy, Object.getPrototypeOf(error) as object) as Error;
}

/** The server refused the login of a client; `cause` is its reply. */
class LoginRefusedError extends Error {
  override readonly name = 'LoginRefusedError';
  /**
   * The answer of a command that the client still keeps, to send it once it is logged in. It is private: a console prints what it was
   * rejected with, and that has the password.
   */
  readonly #answered: Promise<unknown> | undefined;

  constructor(code: string, cause: Error, answered: Promise<unknown> | undefined) {
    super(
      code === 'NOAUTH'
        ? 'NOAUTH: the server requires a password, and the client gave none'
        : 'WRONGPASS: the server refused the user name or the password of the client',
      { cause: withoutCommand(cause) },
    );
    this.#answered = answered;
  }

  /** Undoes the command, if it is carried out after all. */
  undoLate(undo: () => Promise<unknown>): void {
    this.#answered?.then(undo).catch(() => undefined);
  }
}

/**
 * The refusal of a login in an error of a client, or in the error that it wraps, with a message that says what to do;
 * `undefined` for any other error.
 */
export function refusedLogin(error: unknown): Error | undefined {
  return refusalIn(error, undefined);
}

/** @param answered - the answer of a command that the client may still send, once it is logged in */
function refusalIn(error: unknown, answered: Promise<unknown> | undefined): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof LoginRefusedError) return error;
  const [code] = REFUSED.exec(error.message) ?? [];
  if (code !== undefined) return new LoginRefusedError(code, error, answered);
  const { lastNodeError } = error as { lastNodeError?: unknown };
  return refusalIn(lastNodeError, answered) ?? refusalIn(error.cause, answered);
}

/** Undoes a command that a refused client still keeps, after it was carried out all the same. */
export function undoLate(error: unknown, undo: () => Promise<unknown>): void {
  if (error instanceof LoginRefusedError) error.undoLate(undo);
}

/**
 * Tracks why a client is not connected, and whether the server refused its login. Such a client connects again and again, and
 * keeps commands in a queue until then: each would end without an answer, and without the reason.
 */
export class LoginWatch {
  /** The last error of the connection since the client was logged in. */
  lastError: Error | undefined;
  #refusal: unknown;
  readonly #queued = new Set<(cause: unknown) => void>();

  /** Records that the client is logged in. */
  readonly accepted = (): void => {
    this.lastError = undefined;
    this.#refusal = undefined;
  };

  /** Takes an error of a client that is not logged in. */
  failed(error: unknown): void {
    if (error instanceof Error)
      this.lastError = withoutCommand((error as { lastNodeError?: Error }).lastNodeError ?? error);
    this.#refused(error);
  }

  /** The error of a call through a client that has ended by itself; `undefined` if no error is known that ended it. */
  get ended(): NoAnswerError | undefined {
    const { lastError } = this;
    return lastError && new NoAnswerError('the client gave up connecting, and has ended', lastError);
  }

  #refused(error: unknown): void {
    if (refusedLogin(error) === undefined) return;
    this.#refusal = error;
    for (const refuse of this.#queued) refuse(error);
  }

  /** Returns the outcome of `work` of a client that is not logged in, or the refusal of its login, whichever comes first. */
  outcomeOf<T>(work: () => Promise<T>): Promise<T> {
    const refusal = refusedLogin(this.#refusal);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const outcome = work();
      const refuse = (cause: unknown): void => reject(refusalIn(cause, outcome));
      this.#queued.add(refuse);
      outcome
        .finally(() => this.#queued.delete(refuse))
        .then(resolve, (error: unknown) => {
          this.#refused(error);
          reject(refusedLogin(error) ?? error);
        });
    });
  }
}
