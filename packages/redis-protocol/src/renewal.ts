import type { Call, RenewItem, Standing } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import type { ResourceKeys } from './keys.ts';
import type { RedisPort } from './port.ts';
import { isSplitSlot } from './retryable.ts';
import { runScript } from './run-script.ts';

const leasesPerCommand = 200;
// Enough to keep the server busy, few enough that building and reading them never holds the event loop for long.
const commandsAtOnce = 4;
const clusterCommandsAtOnce = 32;

export type KeysOf = (item: RenewItem) => ResourceKeys;

/** Renews many leases: chunks of one request each; in a cluster one for each slot. Never rejects. */
export async function renewAll(
  port: RedisPort,
  items: readonly RenewItem[],
  keysOf: KeysOf,
  call: Call,
): Promise<Standing[]> {
  const standings: Standing[] = new Array(items.length);
  const chunks = port.cluster ? slotChunks(items, keysOf) : plainChunks(items.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let chunk = chunks[next++]; chunk !== undefined; chunk = chunks[next++]) {
      await renewChunk(port, items, chunk, keysOf, standings);
    }
  };
  const workers = Array.from({ length: port.cluster ? clusterCommandsAtOnce : commandsAtOnce }, work);
  await inTime(Promise.all(workers), call);
  for (let index = 0; index < standings.length; index++) {
    standings[index] ??= {
      status: 'unknown',
      error: new Error('no answer from Redis before the deadline of the renewal'),
    };
  }
  // A copy: an answer that comes after the deadline changes nothing that was told.
  return standings.slice();
}

type Chunk = readonly number[];

function plainChunks(count: number): Chunk[] {
  const chunks: Chunk[] = [];
  for (let from = 0; from < count; from += leasesPerCommand) {
    chunks.push(Array.from({ length: Math.min(leasesPerCommand, count - from) }, (_, index) => from + index));
  }
  return chunks;
}

function slotChunks(items: readonly RenewItem[], keysOf: KeysOf): Chunk[] {
  const open = new Map<number, number[]>();
  const chunks: Chunk[] = [];
  for (const [index, item] of items.entries()) {
    const { slot } = keysOf(item);
    const chunk = open.get(slot);
    if (chunk !== undefined && chunk.length < leasesPerCommand) {
      chunk.push(index);
      continue;
    }
    const started = [index];
    open.set(slot, started);
    chunks.push(started);
  }
  return chunks;
}

async function renewChunk(
  port: RedisPort,
  items: readonly RenewItem[],
  chunk: Chunk,
  keysOf: KeysOf,
  standings: Standing[],
): Promise<void> {
  const locks: string[] = [];
  const args: string[] = [];
  for (const index of chunk) {
    const item = items[index] as RenewItem;
    locks.push(keysOf(item).lock);
    args.push(item.grant.request.acquisitionId, String(item.ttlMs));
  }
  try {
    const replies = (await runScript(port, scripts.renew, locks as [string, ...string[]], args)) as unknown[];
    for (const [at, index] of chunk.entries()) standings[index] = standingOf(replies[at]);
  } catch (error) {
    // A slot on the move: some of its keys are here, others there. One key at a time works.
    if (isSplitSlot(error) && chunk.length > 1) {
      await Promise.all(chunk.map((index) => renewChunk(port, items, [index], keysOf, standings)));
      return;
    }
    for (const index of chunk) standings[index] = { status: 'unknown', error };
  }
}

const held: Standing = { status: 'held' };
const absent: Standing = { status: 'lost', reason: 'force-released' };
const taken: Standing = { status: 'lost', reason: 'taken-over' };

function standingOf(reply: unknown): Standing {
  switch (Number(reply)) {
    case 1:
      return held;
    case 0:
      return absent;
    case 2:
      return taken;
    default:
      return { status: 'unknown', error: new Error(String(reply)) };
  }
}

async function inTime(work: Promise<unknown>, call: Call): Promise<void> {
  const left = call.deadline - call.now();
  if (left > 2 ** 31 - 1) {
    await work;
    return;
  }
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    work,
    new Promise((resolve) => {
      timer = setTimeout(resolve, Math.max(0, left));
    }),
  ]);
  clearTimeout(timer);
}
