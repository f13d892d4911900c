/** What a command answers with. Texts are bytes, see `bytes.ts`. */
export type SimulatedReply =
  | string
  | number
  | null
  | StatusReply
  | SimulatedRedisError
  | readonly SimulatedReply[];

/** A simple string, as `OK`. */
export class StatusReply {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export const OK = new StatusReply('OK');

/** An error that the server answers with; its message begins with the code, as `WRONGTYPE`. */
export class SimulatedRedisError extends Error {
  override readonly name = 'ReplyError';
}

/** The server's version has no such command. */
export class UnknownCommandError extends SimulatedRedisError {}
