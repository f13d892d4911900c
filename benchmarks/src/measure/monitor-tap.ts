import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Redis } from 'ioredis';
import type { Counted } from './meter.ts';

/** What `MONITOR` tells: the calls inside scripts are told apart there, and commands are in lower case. */
export interface Monitored extends Counted {
  /** When each request ran, in milliseconds on the server's clock. */
  readonly times: readonly number[];
}

/** Counts the requests that reach the server during `work`. It slows the server: not for timed runs. */
export async function countRequests<T>(control: Redis, work: () => Promise<T>): Promise<[Monitored, T]> {
  const tap = await control.monitor();
  const sent = new Map<string, number>();
  const inScripts = new Set<string>();
  const times: number[] = [];
  let total = 0;
  let counting = false;
  const mark = randomUUID();
  tap.on('monitor', (time: string, args: string[], source: string) => {
    if (args[1] === mark) {
      counting = !counting;
      tap.emit('marked');
    } else if (counting) {
      const name = (args[0] as string).toLowerCase();
      if (source === 'lua') {
        inScripts.add(name);
        return;
      }
      sent.set(name, (sent.get(name) ?? 0) + 1);
      times.push(Number(time) * 1000);
      total += 1;
    }
  });
  const passMark = async (): Promise<void> => {
    const passed = once(tap, 'marked');
    await control.echo(mark);
    await passed;
  };
  try {
    await passMark();
    const result = await work();
    await passMark();
    const alsoInScripts = [...sent.keys()].filter((name) => inScripts.has(name));
    return [{ sent, total, alsoInScripts, times }, result];
  } finally {
    tap.disconnect();
  }
}
