import type { Call, LockMode, RenewItem, Standing } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import { holdersKey, type ResourceKeys } from './keys.ts';
import { shareWeight } from './mode.ts';
import type { RedisPort } from './port.ts';
import { isSplitSlot } from './retryable.ts';
import { runScript } from './run-script.ts';

const leasesPerCommand = 200;
// Enough to keep the server busy, few enough that building and reading them never holds the event loop for long.
const commandsAtOnce = 4;
const clusterCommandsAtOnce = 32;

export type KeysOf = (item: RenewItem) => ResourceKeys;

/**
 * Renews many leases: chunks of one request each, exclusive ones apart from shares; in a cluster one for each slot.
 * Never rejects.
 */
export async function renewAll(
  port: RedisPort,
  items: readonly RenewItem[],
  keysOf: KeysOf,
  call: Call,
): Promise<Standing[]> {
  const standings: Standing[] = new Array(items.length);
  const chunks = chunksOf(port, items, keysOf);
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

function chunksOf(port: RedisPort, items: readonly RenewItem[], keysOf: KeysOf): Chunk[] {
  const open = new Map<number, number[]>();
  const chunks: Chunk[] = [];
  for (const [index, item] of items.entries()) {
    const slot = port.cluster ? keysOf(item).slot : 0;
    const group = shareWeight(item.grant) === undefined ? slot : -1 - slot;
    const chunk = open.get(group);
    if (chunk !== undefined && chunk.length < leasesPerCommand) {
      chunk.push(index);
      continue;
    }
    const started = [index];
    open.set(group, started);
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
  const keys: string[] = [];
  const args: string[] = [];
  let script: (typeof scripts)['renew' | 'renewShares'] = scripts.renew;
  for (const index of chunk) {
    const item = items[index] as RenewItem;
    const of = keysOf(item);
    keys.push(of.lock);
    args.push(item.grant.request.acquisitionId, String(item.ttlMs));
    if (shareWeight(item.grant) === undefined) continue;
    script = scripts.renewShares;
    keys.push(holdersKey(of));
  }
  try {
    const replies = (await runScript(port, script, keys as [string, ...string[]], args)) as unknown[];
    for (const [at, index] of chunk.entries()) standings[index] = standingOf(replies[at]);
  } catch (error) {
    // A slot on the move: some of its keys are here, others there. One key at a time works.
    if (isSplitSlot(error) && chunk.length > 1) {
      await Promise.all(chunk.map((index) => renewChunk(port, items, [index], keysOf, standings)));
      return;
    }
    const index = chunk[0] as number;
    if (isSplitSlot(error) && script === scripts.renewShares) {
      standings[index] = await renewByParts(port, (items[index] as RenewItem).grant.request.mode, keys, args);
      return;
    }
    for (const index of chunk) standings[index] = { status: 'unknown', error };
  }
}

/** First the lock key, then the holders: what is confirmed there stands as long as the mark at the lock key. */
async function renewByParts(
  port: RedisPort,
  { kind }: LockMode,
  keys: readonly string[],
  args: readonly string[],
): Promise<Standing> {
  const [lock, holders] = keys as [string, string];
  const [id, ttlMs] = args as [string, string];
  try {
    if (kind === 'exclusive') {
      // Its downgrade may have failed. Before the mark is asked for: what is shared is never exclusive again.
      const standing = standingOf(((await runScript(port, scripts.renew, [lock], args)) as unknown[])[0]);
      if (standing !== taken) return standing;
    }
    const standing = standingOf(await runScript(port, scripts.renewPart, [lock], [ttlMs]));
    if (standing !== held) return standing;
    return standingOf(await runScript(port, scripts.renewPart, [holders], [ttlMs, id]));
  } catch (error) {
    return { status: 'unknown', error };
  }
}

const held: Standing = { status: 'held' };
const absent: Standing = { status: 'lost', reason: 'force-released' };
const taken: Standing = { status: 'lost', reason: 'taken-over' };

/** What `renew` and `renew-shares` say of one lease. */
function standingOf(reply: unknown): Standing {
  const number = Number(reply);
  if (number === 0) return absent;
  if (number === 2) return taken;
  return number > 0 ? held : { status: 'unknown', error: new Error(String(reply)) };
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
