import { tagOf } from '@locks/redis-protocol';
import { DECODE_STRINGS, type GlideClusterConnection } from './clients.ts';

/** The age at which the table is read again, while somebody asks for it. */
const MAX_AGE_MS = 5000;

interface SlotRange {
  readonly from: number;
  readonly to: number;
  readonly master: string;
}

/**
 * Which master has which slot of a cluster. GLIDE knows it and does not tell, so it is asked from a node. It may be out of date:
 * commands find their node without it.
 */
export class SlotTable {
  readonly #client: GlideClusterConnection;
  #ranges: readonly SlotRange[] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(client: GlideClusterConnection) {
    this.#client = client;
  }

  /** Whether the table was read, or could not be read lately. */
  get isKnown(): boolean {
    if (this.#ranges.length > 0) return true;
    return this.#reading === undefined && performance.now() - this.#readAt < MAX_AGE_MS;
  }

  /** The master of a slot; `undefined` before the table was read. A table that is old is read again meanwhile. */
  masterOf(slot: number): string | undefined {
    if (performance.now() - this.#readAt > MAX_AGE_MS) this.read().catch(() => undefined);
    return this.#ranges.find(({ from, to }) => from <= slot && slot <= to)?.master;
  }

  /** One key for each master, of a slot that it has. */
  async keyOfEachMaster(): Promise<string[]> {
    await this.read();
    const keys = new Map(this.#ranges.map(({ master, from }) => [master, tagOf(from)]));
    return [...keys.values()];
  }

  /** Marks the table as out of date. */
  expire(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  /** Reads the table, once for all who ask meanwhile. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    this.#readAt = performance.now();
    const reply = (await this.#client.customCommand(['CLUSTER', 'SLOTS'], {
      decoder: DECODE_STRINGS,
    })) as [from: number, to: number, [host: string | null, port: number, id: string]][];
    this.#ranges = reply.map(([from, to, [, , master]]) => ({ from, to, master }));
  }
}
