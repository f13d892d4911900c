/** Codes of Node and of its resolver for a connection that could not be made, or ended. */
const CODES = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ETIMEDOUT',
]);
/** Of undici, which is behind `fetch`: `UND_ERR_SOCKET`. */
const UNDICI = 'UND_ERR_';
const MOST_CAUSES = 5;

/** Whether an error, or one that caused it, is that of a connection which could not be made, or ended: the same request may succeed. */
export function isNetworkError(error: unknown): boolean {
  let each = error;
  for (let depth = 0; each instanceof Error && depth < MOST_CAUSES; depth += 1) {
    const { code } = each as NodeJS.ErrnoException;
    if (typeof code === 'string' && (CODES.has(code) || code.startsWith(UNDICI))) return true;
    each = each.cause;
  }
  return false;
}
