/** Next.js, `app/ready/route.ts`. */
import { shared } from './locks.ts';

export async function GET(): Promise<Response> {
  const answer = await shared()
    .locks.ping({ answerMs: 500 })
    .catch(() => undefined);
  return Response.json(answer ?? { ready: false }, { status: answer === undefined ? 503 : 200 });
}
