import type { HistoryExpectation, HistoryMode, HistoryViolationKind } from '../src/index.ts';
import { Planted } from './planted.ts';

const shared: HistoryMode = { kind: 'shared' };
const permits = (weight: number, limit = 3): HistoryMode => ({ kind: 'permit', weight, limit });

export interface PlantedHistory {
  readonly title: string;
  readonly history: Planted;
  readonly expectations?: readonly HistoryExpectation[];
}

export interface PlantedViolation extends PlantedHistory {
  readonly kinds: readonly HistoryViolationKind[];
  /** What the first sentence says. */
  readonly says: RegExp;
  /** The calls of the first violation, as `process operation id`. */
  readonly concerns: readonly string[];
}

/** Each kind of violation, once or more. */
export const brokenHistories: readonly PlantedViolation[] = [
  {
    title: 'two exclusive holds at once',
    history: new Planted()
      .acquire('a', 'x', 1, 1)
      .acquire('b', 'y', 2, 2)
      .release('a', 'x', 3)
      .release('b', 'y', 4),
    kinds: ['exclusion'],
    says: /^b's acquisition "y" \(exclusive, token 2\) held from 1\.500 ms to 3\.500 ms while a's acquisition "x" \(exclusive, token 1\) from 0\.500 ms to 2\.500 ms held \(resource "stock"\)\.$/,
    concerns: ['a acquire 1', 'b acquire 2', 'a release 3', 'b release 4'],
  },
  {
    title: 'a writer beside a reader that never leaves',
    history: new Planted().acquire('a', 'x', 1, 1, shared).acquire('b', 'y', 2, 2),
    kinds: ['exclusion'],
    says: /a's acquisition "x" \(shared, token 1\) from 0\.500 ms to the end held/,
    concerns: ['a acquire 1', 'b acquire 2'],
  },
  {
    title: 'a reader beside a writer',
    history: new Planted().acquire('a', 'x', 1).acquire('b', 'y', 2, undefined, shared),
    kinds: ['exclusion'],
    says: /^b's acquisition "y" \(shared\) held/,
    concerns: ['a acquire 1', 'b acquire 2'],
  },
  {
    title: 'more permits than there are',
    history: new Planted()
      .acquire('a', 'x', 1, 1, permits(1))
      .acquire('b', 'y', 2, 2, permits(2))
      .acquire('c', 'z', 3, 3, permits(1)),
    kinds: ['capacity'],
    says: /^4 of 3 permits were held from 2\.500 ms: c's acquisition "z" \(1 of 3 permits, token 3\) while a's/,
    concerns: ['a acquire 1', 'b acquire 2', 'c acquire 3'],
  },
  {
    title: 'permits under two limits',
    history: new Planted().acquire('a', 'x', 1, 1, permits(1)).acquire('b', 'y', 2, 2, permits(1, 4)),
    kinds: ['limit'],
    says: /held under another limit/,
    concerns: ['a acquire 1', 'b acquire 2'],
  },
  {
    title: 'a token that does not rise',
    history: new Planted().acquire('a', 'x', 1, 7).release('a', 'x', 2).acquire('b', 'y', 3, 7),
    kinds: ['token-order'],
    says: /^b's acquisition "y" \(exclusive, token 7\) was granted at 2\.500 ms, and its token is not higher than that of a's/,
    concerns: ['a acquire 1', 'a release 2', 'b acquire 3'],
  },
  {
    title: "a writer's token below that of an earlier reader",
    history: new Planted()
      .acquire('a', 'x', 1, 5, shared)
      .acquire('b', 'y', 1.5, 3, shared)
      .release('a', 'x', 2)
      .release('b', 'y', 3)
      .acquire('c', 'z', 4, 4),
    kinds: ['token-order'],
    says: /than that of a's/,
    concerns: ['a acquire 1', 'a release 3', 'c acquire 5'],
  },
  {
    title: 'a token of permits below that of permits which it excludes',
    history: new Planted()
      .acquire('a', 'w', 1, 9, permits(1))
      .release('a', 'w', 2)
      .acquire('b', 'x', 3, 8, permits(2))
      .release('b', 'x', 4)
      .acquire('c', 'y', 5, 7, permits(2)),
    kinds: ['token-order'],
    says: /than that of b's/,
    concerns: ['b acquire 3', 'b release 4', 'c acquire 5'],
  },
  {
    title: 'another token at the second entry',
    history: new Planted().acquire('a', 'x', 1, 1).acquire('a', 'x', 2, 2),
    expectations: ['reentrant'],
    kinds: ['token-change'],
    says: /entered again at 1\.500 ms with token 2/,
    concerns: ['a acquire 1', 'a acquire 2'],
  },
  {
    title: 'a grant without a token',
    history: new Planted().acquire('a', 'x', 1),
    expectations: ['fenced'],
    kinds: ['token-missing'],
    says: /without a fencing token/,
    concerns: ['a acquire 1'],
  },
  {
    title: 'a second entry where the lock is not reentrant',
    history: new Planted().acquire('a', 'x', 1, 1).acquire('a', 'x', 2, 1),
    kinds: ['reentry'],
    says: /a second time at 1\.500 ms/,
    concerns: ['a acquire 1', 'a acquire 2'],
  },
  {
    title: 'a reader that becomes a writer',
    history: new Planted().acquire('a', 'x', 1, 1, shared).acquire('a', 'x', 2, 1),
    expectations: ['reentrant'],
    kinds: ['mode-change'],
    says: /in mode exclusive/,
    concerns: ['a acquire 1', 'a acquire 2'],
  },
  {
    title: 'an acquisition id that holds again',
    history: new Planted().acquire('a', 'x', 1, 1).release('a', 'x', 2).acquire('a', 'x', 3, 1),
    expectations: ['reentrant'],
    kinds: ['reuse'],
    says: /was granted at 2\.500 ms after its hold had ended/,
    concerns: ['a acquire 1', 'a acquire 3'],
  },
  {
    title: 'an acquisition id that holds again, without a token',
    history: new Planted().acquire('a', 'x', 1).release('a', 'x', 2).acquire('a', 'x', 3),
    expectations: ['reentrant'],
    kinds: ['reuse'],
    says: /was granted at 2\.500 ms after its hold had ended/,
    concerns: ['a acquire 1', 'a acquire 3'],
  },
  {
    title: 'an acquisition that is granted again after its loss',
    history: new Planted().acquire('a', 'x', 1, 1).loss('a', 'x', 2).acquire('a', 'x', 3, 1),
    expectations: ['reentrant'],
    kinds: ['reuse'],
    says: /after its hold had ended/,
    concerns: ['a acquire 1', 'a acquire 2'],
  },
  {
    title: "a release of another's lock",
    history: new Planted().acquire('a', 'x', 1).release('b', 'x', 2),
    kinds: ['owner'],
    says: /^b released a's acquisition "x" \(exclusive\) at 1\.750 ms, which belongs to a/,
    concerns: ['a acquire 1', 'b release 2'],
  },
  {
    title: "an entry into another's lock",
    history: new Planted().acquire('a', 'x', 1).acquire('b', 'x', 2),
    expectations: ['reentrant'],
    kinds: ['owner'],
    says: /^b entered a's/,
    concerns: ['a acquire 1', 'b acquire 2'],
  },
  {
    title: 'a release that succeeds twice',
    history: new Planted().acquire('a', 'x', 1).release('a', 'x', 2).release('a', 'x', 3),
    kinds: ['release'],
    says: /^a was told at 2\.750 ms that it released acquisition "x", which did not hold/,
    concerns: ['a acquire 1', 'a release 2', 'a release 3'],
  },
  {
    title: 'a release of what never held',
    history: new Planted().release('a', 'x', 1),
    kinds: ['release'],
    says: /which did not hold/,
    concerns: ['a release 1'],
  },
  {
    title: 'a release that succeeds after the loss',
    history: new Planted().acquire('a', 'x', 1).loss('a', 'x', 2).release('a', 'x', 3),
    kinds: ['release'],
    says: /whose loss it had noted at 1\.500 ms/,
    concerns: ['a acquire 1', 'a release 2'],
  },
  {
    title: 'a loss that is noted after another holds',
    history: new Planted().acquire('a', 'x', 1, 1).acquire('b', 'y', 5, 2).loss('a', 'x', 6),
    kinds: ['exclusion'],
    says: /from 0\.500 ms to 5\.500 ms held/,
    concerns: ['a acquire 1', 'b acquire 2'],
  },
  {
    title: 'a crash after another holds',
    history: new Planted().acquire('a', 'x', 1, 1).acquire('b', 'y', 5, 2).crash('a', 6),
    kinds: ['exclusion'],
    says: /^b's/,
    concerns: ['a acquire 1', 'b acquire 2'],
  },
  {
    title: 'a hold of which a failed release was not the end',
    history: new Planted().acquire('a', 'x', 1, 1).release('a', 'x', 2, 'fail').acquire('b', 'y', 5, 2),
    kinds: ['exclusion'],
    says: /from 0\.500 ms to the end held/,
    concerns: ['a acquire 1', 'b acquire 3'],
  },
  {
    title: "a hold of which another's release without an outcome was not the end",
    history: new Planted().acquire('a', 'x', 1, 1).release('b', 'x', 2, 'info').acquire('b', 'y', 5, 2),
    kinds: ['exclusion'],
    says: /from 0\.500 ms to the end held/,
    concerns: ['a acquire 1', 'b acquire 3'],
  },
  {
    title: 'a hold that was entered twice and released once',
    history: new Planted()
      .acquire('a', 'x', 1, 1)
      .acquire('a', 'x', 2, 1)
      .release('a', 'x', 3)
      .acquire('b', 'y', 5, 2),
    expectations: ['reentrant'],
    kinds: ['exclusion'],
    says: /to the end held/,
    concerns: ['a acquire 1', 'b acquire 4'],
  },
];

/** What a lock may do. */
export const keptHistories: readonly (PlantedHistory & { readonly idleMs?: number })[] = [
  { title: 'nothing', history: new Planted() },
  {
    title: 'one holder after the other, with the time between them',
    history: new Planted().acquire('a', 'x', 1, 1).release('a', 'x', 2).acquire('b', 'y', 2.25, 2),
    expectations: ['fenced'],
    idleMs: 0.25,
  },
  {
    title: 'readers together, and a writer after them',
    history: new Planted()
      .acquire('a', 'x', 1, 1, shared)
      .acquire('b', 'y', 1.5, 1, shared)
      .release('a', 'x', 2)
      .release('b', 'y', 3)
      .acquire('c', 'z', 3, 2),
  },
  {
    title: 'permits within their limit, in any order of their tokens',
    history: new Planted()
      .acquire('a', 'x', 1, 2, permits(1))
      .release('a', 'x', 2)
      .acquire('b', 'y', 3, 1, permits(2))
      .acquire('c', 'z', 4, 3, permits(1)),
  },
  {
    title: 'a second entry, and as many releases',
    history: new Planted()
      .acquire('a', 'x', 1, 1)
      .acquire('a', 'x', 2, 1)
      .release('a', 'x', 3)
      .release('a', 'x', 4)
      .acquire('b', 'y', 4, 2),
    expectations: ['reentrant', 'fenced'],
  },
  {
    title: 'a holder that stood still, and noted its loss after another held',
    history: new Planted().acquire('a', 'x', 1, 1).acquire('b', 'y', 5, 2).loss('a', 'x', 6, 4),
  },
  {
    title: 'a release without an outcome, repeated',
    history: new Planted()
      .acquire('a', 'x', 1, 1)
      .release('a', 'x', 2, 'info')
      .release('a', 'x', 3)
      .acquire('b', 'y', 4, 2),
  },
  {
    title: 'a crashed holder, and the next one',
    history: new Planted().acquire('a', 'x', 1, 1).crash('a', 3).acquire('b', 'y', 4, 2),
    idleMs: 0.5,
  },
  {
    title: 'holds without length at the end and at the beginning of others',
    history: new Planted()
      .acquire('a', 'x', 1)
      .release('a', 'x', 2)
      .acquire('b', 'y', 2)
      .release('b', 'y', 2)
      .acquire('c', 'z', 2)
      .release('c', 'z', 2)
      .acquire('d', 'w', 2),
  },
];

/** What a lock must not do, and `checkHistory()` does not see: docs/histories.md. */
export const unjudgedHistories: readonly PlantedHistory[] = [
  {
    title: 'a grant while another held, which was over before its holder saw it',
    history: new Planted()
      .acquire('a', 'x', 1, 1)
      .acquire('b', 'y', 3, 2)
      .loss('b', 'y', 4, 2.5)
      .release('a', 'x', 5),
  },
  {
    title: 'a grant while another held, which was released before it was answered',
    history: new Planted()
      .acquire('a', 'x', 1, 1)
      .acquire('b', 'y', 3, 2)
      .release('b', 'y', 2.625)
      .release('a', 'x', 5),
  },
];
