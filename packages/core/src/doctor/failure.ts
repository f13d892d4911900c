/** An error with its causes. */
export interface Failure {
  /** The message, with those of the causes that it does not repeat. */
  readonly message: string;
  /** The `code` of the error and of its causes. */
  readonly codes: readonly string[];
}

/** Reads an error that a lock threw, or a warning of its adapter. */
export function failureOf(error: unknown): Failure {
  return { message: messagesOf(error), codes: codesOf(error) };
}

function messagesOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Its own message is empty: the host was reached at none of its addresses.
  if (error instanceof AggregateError) return error.errors.map(messagesOf).join(', ');
  const { message, cause } = error;
  if (cause === undefined) return message;
  const more = messagesOf(cause);
  return message.includes(more) ? message : `${message} (${more})`;
}

function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const { code } = error as { readonly code?: unknown };
  return [...(typeof code === 'string' ? [code] : []), ...codesOf(error.cause)];
}
