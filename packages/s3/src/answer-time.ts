import type { GetObjectCommand } from '@aws-sdk/client-s3';
import { type AnswerHeaders, timeInHeaders } from '@locks/record-protocol';

/**
 * Reads the header `Date` of the answers to a command, also of those that refuse it. It is added to the command alone: other
 * commands of the client stay as they are.
 *
 * @returns the time of the last answer, in milliseconds since 1970
 */
export function watchAnswerTime({
  middlewareStack,
}: Pick<GetObjectCommand, 'middlewareStack'>): () => number | undefined {
  let time: number | undefined;
  middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { headers } = result.response as { headers?: AnswerHeaders };
      time = timeInHeaders(headers) ?? time;
      return result;
    },
    // Inside the step that throws what the answer refuses.
    { step: 'deserialize', priority: 'low', name: 'locksAnswerTime' },
  );
  return () => time;
}
