import type { Call, LockBackend, RenewItem, RenewalStatus } from '../src/backend/types.ts';
import { delegate } from './delegate.ts';

/** Answers a renewal in place of the store; `send` forwards it to the store. */
export type AnswerRenewal = (
  items: readonly RenewItem[],
  send: () => Promise<readonly RenewalStatus[]>,
  index: number,
) => Promise<readonly RenewalStatus[]>;

export interface SentRenewal {
  readonly sentAt: number;
  readonly items: readonly RenewItem[];
}

/** Records the renewals that core sends, and may answer them itself. */
export class RenewalLog {
  readonly calls: SentRenewal[] = [];
  readonly #answer: AnswerRenewal;

  constructor(answer: AnswerRenewal = (_, send) => send()) {
    this.#answer = answer;
  }

  /** For `context.client({ wrap: log.wrap })`. */
  readonly wrap = (backend: LockBackend): LockBackend =>
    delegate(backend, {
      renew: (items: readonly RenewItem[], call: Call) => {
        this.calls.push({ sentAt: performance.now(), items: [...items] });
        return this.#answer(items, () => backend.renew(items, call), this.calls.length - 1);
      },
    });

  /** The renewals of one acquisition. */
  of(acquisitionId: string): { readonly sentAt: number; readonly item: RenewItem }[] {
    return this.calls.flatMap(({ sentAt, items }) =>
      items
        .filter(({ grant }) => grant.request.acquisitionId === acquisitionId)
        .map((item) => ({ sentAt, item })),
    );
  }
}
