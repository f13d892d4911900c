/** A message of the parent: the call of a method. */
export interface ProcessCall {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** An error on its way between processes, with the properties that callers check. */
export interface SentError {
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: string | undefined;
  readonly reason?: string | undefined;
}

/** A message of the child: the outcome of one call. */
export type ProcessReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: SentError };

/** Every program answers this method, once its methods are there. */
export const READY = 'ready';
