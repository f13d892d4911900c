/** The headers of an answer by HTTP, as clients have them. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The time in the header `Date` of an answer by HTTP, in milliseconds since 1970, in steps of a second. An answer with `Age` comes from a
 * cache and tells none: its `Date` is from before the request.
 */
export function timeInHeaders(headers: AnswerHeaders | undefined): number | undefined {
  let date = '';
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (value === undefined) continue;
    if (/^age$/i.test(name)) return undefined;
    if (/^date$/i.test(name)) date = String(value);
  }
  const time = Date.parse(date);
  return Number.isNaN(time) ? undefined : time;
}
