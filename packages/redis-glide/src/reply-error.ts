/** GLIDE's names of the errors of a server, with the codes that the server wrote. */
const CODES: Readonly<Record<string, string>> = {
  ResponseError: 'ERR',
  NoScriptError: 'NOSCRIPT',
  PermissionDenied: 'NOPERM',
  Moved: 'MOVED',
  Ask: 'ASK',
  TryAgain: 'TRYAGAIN',
  CrossSlot: 'CROSSSLOT',
  ClusterDown: 'CLUSTERDOWN',
  MasterDown: 'MASTERDOWN',
  ReadOnly: 'READONLY',
  BusyLoadingError: 'LOADING',
};
const KNOWN = /^An error was signalled by the server:? - (\w+): ([^]*)$/;
const OTHER = /^([A-Z][A-Z\d]+): ([^]*)$/;
const REFUSED_LOGIN = /\b(NOAUTH|WRONGPASS): ([^]*)$/;

/** The server's reply to a command that it refused, in its own words, which GLIDE rewrites. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** The reply of the server in an error of GLIDE; any other error as it is. */
export function replyErrorOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { message } = error;
  const [, kind = '', text] = KNOWN.exec(message) ?? [];
  if (text !== undefined) return new ReplyError(`${CODES[kind] ?? kind} ${text}`, { cause: error });
  const [, code, rest] = OTHER.exec(message) ?? REFUSED_LOGIN.exec(message) ?? [];
  return code === undefined ? error : new ReplyError(`${code} ${rest}`, { cause: error });
}
