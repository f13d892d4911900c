import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** The next message of a process; rejects when it ends before. */
export async function nextMessage(child: ChildProcess): Promise<unknown> {
  const ended = new AbortController();
  const exited = once(child, 'exit', { signal: ended.signal }).then(([code]) => {
    throw new Error(`A process ended with exit code ${code} before its work was done.`);
  });
  try {
    const [message] = (await Promise.race([once(child, 'message', { signal: ended.signal }), exited])) as [
      unknown,
    ];
    return message;
  } finally {
    exited.catch(() => {});
    ended.abort();
  }
}
