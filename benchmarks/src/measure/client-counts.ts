import { type Meter, meterOf } from './meter.ts';

/** What client processes have sent since they began. */
export interface ClientCounts {
  /** By the kind of the request, in the client's words; each repetition by the client counts. */
  readonly sent: ReadonlyMap<string, number>;
  /** Writes that were refused since another one came first. */
  readonly conflicts: number;
}

const sent = new Map<string, number>();
let conflicts = 0;

/** For the client of a server that tells nobody what it was asked: called once for each request of this process. */
export function countSent(kind: string): void {
  sent.set(kind, (sent.get(kind) ?? 0) + 1);
}

export function countConflict(): void {
  conflicts += 1;
}

export function readCounts(): ClientCounts {
  return { sent, conflicts };
}

export function sumOf(counts: readonly ClientCounts[]): ClientCounts {
  const all = new Map<string, number>();
  for (const [kind, count] of counts.flatMap((one) => [...one.sent])) {
    all.set(kind, (all.get(kind) ?? 0) + count);
  }
  return { sent: all, conflicts: counts.reduce((sum, one) => sum + one.conflicts, 0) };
}

/** A meter from what all client processes together have sent. */
export function clientMeter(read: () => Promise<ClientCounts>): Meter {
  const requests = meterOf({ read: async () => (await read()).sent, ownOperations: 0 });
  return {
    async count(work) {
      const before = await read();
      const [counted, result] = await requests.count(work);
      const after = await read();
      return [{ ...counted, conflicts: after.conflicts - before.conflicts }, result];
    },
  };
}
