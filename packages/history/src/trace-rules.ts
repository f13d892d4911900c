/** A rule of docs/spec.md to which a trace is held. */
export type TraceRule = keyof typeof TRACE_RULES;

/** The rules by name: the paragraph of docs/spec.md, and what holds. */
export const TRACE_RULES = {
  'belief-in-time': [
    '§1.2',
    'a lease is believed until its confirmed grant or renewal, counted from its sending, is over',
  ],
  'belief-granted': ['§1.4', 'what is believed was granted'],
  'belief-ended': [
    '§3.3',
    'nothing is believed, entered or renewed after its end was told, or after its abandon',
  ],
  'renewal-lost': ['§1.5', 'a renewal that was answered with a loss ends the lease'],
  'renewal-sent': [
    '§4.2',
    'a lease that renews by itself does not end by its time before a renewal was sent',
  ],
  'loss-told': ['§8.1', 'the end of a lease by its time is told'],
  'loss-told-first': ['§8.2', 'the end of a lease by its time is told before the next one enters'],
  'loss-explained': [
    '§3.1',
    'a lease is lost before its time only to a steal, a forced release or a loss of data',
  ],
  exclusion: ['§11.1', 'beliefs that exclude each other do not overlap'],
  permits: ['§15.5', 'the permits believed in stay within their limit'],
  'token-order': ['§6.1', 'a later holder has a higher token'],
  'token-kept': ['§6.2', 'an acquisition has one token, and keeps it at a renewal'],
  'token-own': ['§6.6', 'no two acquisitions of a name have one token'],
  'token-present': ['§6.1', 'where tokens are declared, each grant has one'],
  'given-back': ['§2.3', 'what was granted and is not believed, or not believed any more, is given back'],
  abandoned: ['§2.2', 'an acquire that gave up abandons its id'],
  'id-used-once': ['§2.2', 'no attempt is sent with an id that was abandoned'],
  entries: ['§5.3', 'of the re-entries of one scope one is active at a time'],
  closed: ['§12.4', 'a closed manager calls its backend no more'],
  idle: ['§7.3', 'nobody waits for what nobody believes to hold for longer than was allowed'],
} as const satisfies Readonly<Record<string, readonly [clause: string, what: string]>>;

/** The place of a line in a file. */
export interface TracePlace {
  /** `undefined` where the trace is no file. */
  readonly file: string | undefined;
  /** The number of the line, from 1. */
  readonly line: number;
}

/** A rule that a trace breaks. */
export interface TraceViolation {
  readonly rule: TraceRule;
  /** The paragraph of docs/spec.md. */
  readonly clause: string;
  /** The name of the lock; `undefined` where it concerns none. */
  readonly resource: string | undefined;
  readonly sentence: string;
  /** The lines that show it, the earliest first. */
  readonly lines: readonly TracePlace[];
}

/** How often a rule was checked, and what broke it. */
export interface CheckedRule {
  readonly rule: TraceRule;
  readonly clause: string;
  /** The rule in words. */
  readonly what: string;
  readonly checked: number;
  readonly violations: number;
}

/** Counts the checks of each rule, and keeps the violations. */
export class RuleBook {
  readonly violations: TraceViolation[] = [];
  readonly #checked = new Map<TraceRule, number>();

  /** Notes a check; where it fails, `tell` says what was wrong, and which lines show it. */
  check(
    rule: TraceRule,
    holds: boolean,
    resource: string | undefined,
    tell: () => readonly [sentence: string, ...lines: (TracePlace | undefined)[]],
  ): void {
    this.count(rule);
    if (holds) return;
    const [sentence, ...places] = tell();
    const lines = places.filter((place) => place !== undefined);
    this.violations.push({ rule, clause: TRACE_RULES[rule][0], resource, sentence, lines });
  }

  count(rule: TraceRule, times = 1): void {
    this.#checked.set(rule, (this.#checked.get(rule) ?? 0) + times);
  }

  get rules(): CheckedRule[] {
    return (Object.keys(TRACE_RULES) as TraceRule[]).map((rule) => {
      const [clause, what] = TRACE_RULES[rule];
      const violations = this.violations.filter((one) => one.rule === rule).length;
      return { rule, clause, what, checked: this.#checked.get(rule) ?? 0, violations };
    });
  }
}
