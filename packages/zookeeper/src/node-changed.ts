import { type Call, TurnWait } from '@locks/core/backend';
import type { ZookeeperSession } from './zookeeper-session.ts';

/** Waits until a node changes; resolves to `false` if the call ended before. */
export async function nodeChanged(session: ZookeeperSession, path: string, call: Call): Promise<boolean> {
  const wait = new TurnWait();
  let isChanged = false;
  const changed = (): void => {
    isChanged = true;
    wait.end();
  };
  const ended = wait.begin(call);
  if (wait.call === undefined) return false;
  try {
    if ((await session.watches.add(path, changed)) === undefined) return true;
    await ended;
    return isChanged;
  } finally {
    wait.end();
    session.watches.drop(path, changed);
  }
}
