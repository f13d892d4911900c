import type { HistoryEvent, HistoryMode } from '../src/index.ts';

/** Writes histories of one resource call by call; times are given. */
export class Planted {
  readonly events: HistoryEvent[] = [];
  #calls = 0;

  /** An acquire from a moment before `at`, granted then. */
  acquire(process: string, acquisitionId: string, at: number, token?: number, mode?: HistoryMode): this {
    return this.#call('acquire', process, acquisitionId, at - 0.5, at, {
      ...(token !== undefined && { token: String(token) }),
      ...(mode !== undefined && { mode }),
    });
  }

  /** A release that begins at `at`, and is answered a moment later. */
  release(process: string, acquisitionId: string, at: number, type: 'ok' | 'info' | 'fail' = 'ok'): this {
    return this.#call('release', process, acquisitionId, at, at + 0.25, {}, type);
  }

  loss(process: string, acquisitionId: string, time: number, endedAt = time): this {
    const operation = { type: 'info', operation: 'loss', resource: 'stock' } as const;
    this.events.push({ ...operation, process, acquisitionId, time, endedAt });
    return this;
  }

  crash(process: string, time: number): this {
    this.events.push({ type: 'info', operation: 'crash', process, time });
    return this;
  }

  #call(
    operation: 'acquire' | 'release',
    process: string,
    acquisitionId: string,
    from: number,
    to: number,
    { mode, token }: Pick<HistoryEvent, 'mode' | 'token'>,
    type: 'ok' | 'info' | 'fail' = 'ok',
  ): this {
    const call = { operation, process, id: (this.#calls += 1), resource: 'stock', acquisitionId } as const;
    this.events.push({ type: 'invoke', ...call, time: from, ...(mode !== undefined && { mode }) });
    this.events.push({ type, ...call, time: to, ...(token !== undefined && { token }) });
    return this;
  }
}
