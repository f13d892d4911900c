import { EXCLUSIVE } from './history-event.ts';
import type { TraceAcquisition, TraceOutcome } from './trace-line.ts';
import type { RuleBook, TraceRule } from './trace-rules.ts';
import {
  checkAcquisition,
  type LineOf,
  newAcquisition,
  type PlacedLine,
  type TakenAway,
  type TracedAcquisition,
  type TracedClient,
  type TracedProcess,
  type TracedResource,
} from './traced-acquisition.ts';

/** Times of the trace have three decimals. */
const ROUNDING_MS = 0.01;
interface SentCall {
  readonly line: LineOf<'call'>;
  readonly takenAway: TakenAway | undefined;
}

/** The end of a lease for its holder (docs/spec.md §1.2). */
function endOf(countedFrom: number, validForMs: number): number {
  return countedFrom + validForMs - (validForMs * 0.01 + 2);
}

/** Reads the lines of one process in their order, and holds them to the rules that concern one acquisition each. */
export class ProcessJudge {
  readonly #process: TracedProcess;
  readonly #book: RuleBook;
  readonly #lateMs: number;
  readonly #resourceOf: (store: string, name: string) => TracedResource;
  readonly #calls = new Map<string, SentCall>();
  /** The active re-entry of each scope. */
  readonly #entries = new Map<string, LineOf<'enters' | 'leaves'>>();
  readonly #acquisitions = new Set<TracedAcquisition>();

  constructor(
    process: TracedProcess,
    book: RuleBook,
    lateMs: number,
    resourceOf: (store: string, name: string) => TracedResource,
  ) {
    this.#process = process;
    this.#book = book;
    this.#lateMs = lateMs;
    this.#resourceOf = resourceOf;
  }

  /** Reads the lines. Gives the acquisitions of the process. */
  read(): ReadonlySet<TracedAcquisition> {
    for (const line of this.#process.lines) {
      const { event } = line;
      if (!('client' in event) || event.step === 'client') continue;
      const client = this.#process.clients.get(event.client);
      if (client === undefined) continue;
      if (event.step === 'call') this.#called(line as LineOf<'call'>, client);
      else if (event.step === 'answer') this.#answered(line as LineOf<'answer'>, client);
      else if (event.step === 'closes') client.closed = line;
      else this.#told(line, event.acquisition, client);
    }
    return this.#acquisitions;
  }

  #called(line: LineOf<'call'>, client: TracedClient): void {
    const { method, acquisitions, call, client: number } = line.event;
    const { closed } = client;
    this.#book.check('closed', closed === undefined, acquisitions[0]?.name, () => [
      `${this.#process.name} called ${method} after it had closed its manager.`,
      closed,
      line,
    ]);
    let takenAway: TakenAway | undefined;
    for (const one of acquisitions) takenAway = this.#sent(line, one, client) ?? takenAway;
    this.#calls.set(`${number} ${call}`, { line, takenAway });
  }

  /** One acquisition of a call. Gives the time in which others may lose their holds by it. */
  #sent(line: LineOf<'call'>, given: TraceAcquisition, client: TracedClient): TakenAway | undefined {
    const { method } = line.event;
    const resource = this.#resourceOf(client.store, given.name);
    const taking = (id: string | undefined, by?: string): TakenAway => {
      const window = { from: line.time, until: Number.POSITIVE_INFINITY, id, by };
      resource.takenAway.push(window);
      return window;
    };
    if (method === 'forceRelease') return taking(given.id);
    if (method === 'resize')
      return void (given.mode?.kind === 'permit' && resource.limits.push(given.mode.limit));
    if (given.id === undefined) return undefined;
    const isTransfer = given.adopts === given.id;
    const isAttempt = (method === 'attempt' || method === 'attemptMany') && !isTransfer;
    const one = this.#acquisition(resource, given, client, isAttempt);
    if (isTransfer && method === 'attempt') one.transfer ??= line;
    else if (isAttempt) {
      this.#check(
        'id-used-once',
        one.abandon === undefined,
        one,
        'an attempt was sent after its abandon',
        one.abandon,
        line,
      );
      one.sent ??= line;
      one.attempts += 1;
      if (given.mode !== undefined) one.mode = given.mode;
      if (given.steal === true || given.adopts !== undefined) return taking(given.adopts, one.id);
    } else if (method === 'abandon') one.abandon ??= line;
    else if (method === 'release') {
      one.releases += 1;
      one.release ??= line;
    } else if (method === 'downgrade') one.downgrade ??= line;
    else if (method === 'renew') this.#renewed(line, given, one);
    return undefined;
  }

  #renewed(line: LineOf<'call'>, given: TraceAcquisition, one: TracedAcquisition): void {
    const over = one.end ?? one.abandon ?? one.transfer;
    this.#check('belief-ended', over === undefined, one, 'a renewal was sent after the end', over, line);
    this.#checkToken(line, given.token, one);
    one.renewal ??= line;
    one.hasOtherTtls ||= one.renewedForMs !== undefined && one.renewedForMs !== given.ttlMs;
    one.renewedForMs = given.ttlMs;
  }

  #answered(line: LineOf<'answer'>, client: TracedClient): void {
    const key = `${line.event.client} ${line.event.call}`;
    const sent = this.#calls.get(key);
    if (sent === undefined) return;
    this.#calls.delete(key);
    const { outcomes } = line.event;
    const [first] = outcomes;
    // Nobody knows when the store carries out what it did not answer.
    if (sent.takenAway !== undefined && first?.status !== 'failed')
      sent.takenAway.until = line.time + this.#lateMs + (client.capabilities.cohort?.withinMs ?? 0);
    const { method, acquisitions } = sent.line.event;
    for (const [index, given] of acquisitions.entries()) {
      const outcome = outcomes[index] ?? first;
      if (given.id === undefined || outcome === undefined || method === 'forceRelease') continue;
      const one = this.#acquisition(this.#resourceOf(client.store, given.name), given, client, false);
      if (method === 'renew') this.#renewalAnswered(line, sent.line, given, outcome, one);
      else if (method === 'release' && outcome.status === 'not-held' && one.release === sent.line)
        one.notHeld ??= line;
      else if (method !== 'attempt' && method !== 'attemptMany' && method !== 'awaitTurn') continue;
      else if (given.adopts !== given.id) this.#attemptAnswered(line, given, outcome, one);
    }
  }

  #attemptAnswered(
    line: LineOf<'answer'>,
    given: TraceAcquisition,
    outcome: TraceOutcome,
    one: TracedAcquisition,
  ): void {
    if (outcome.status === 'full') one.attempts -= 1;
    if (outcome.status !== 'granted') return;
    const { countedFrom = line.event.at, validForMs = given.ttlMs ?? 0, token } = outcome;
    one.granted ??= line;
    one.confirmedUntil = Math.max(one.confirmedUntil, endOf(countedFrom, validForMs));
    const hasTokens = one.client.capabilities.fencing !== 'none';
    if (hasTokens)
      this.#check('token-present', token !== undefined, one, 'it was granted without a token', line);
    this.#checkToken(line, token, one);
  }

  #renewalAnswered(
    line: PlacedLine,
    sent: LineOf<'call'>,
    given: TraceAcquisition,
    { status, validForMs = given.ttlMs ?? 0 }: TraceOutcome,
    one: TracedAcquisition,
  ): void {
    if (status === 'held')
      one.confirmedUntil = Math.max(one.confirmedUntil, endOf(sent.event.at, validForMs));
    else if (status === 'lost') one.lost ??= line;
  }

  #told(line: PlacedLine, given: TraceAcquisition, client: TracedClient): void {
    const one = this.#acquisition(this.#resourceOf(client.store, given.name), given, client, false);
    const { step } = line.event;
    if (step === 'believes') this.#believes(line as LineOf<'believes'>, given, one);
    else if (step === 'ends') one.end ??= line as LineOf<'ends'>;
    else if (step === 'gives-up') one.gaveUp ??= line;
    else if (step === 'enters' || step === 'leaves') this.#entry(line as LineOf<'enters' | 'leaves'>, one);
  }

  #believes(line: LineOf<'believes'>, given: TraceAcquisition, one: TracedAcquisition): void {
    const over = one.end ?? one.abandon ?? one.transfer;
    this.#check('belief-ended', over === undefined, one, 'it was believed after its end', over, line);
    if (one.isWhole)
      this.#check(
        'belief-granted',
        one.granted !== undefined,
        one,
        'it was believed without a grant',
        one.sent,
        line,
      );
    const { until } = line.event;
    const isLease = one.client.capabilities.tenure === 'lease';
    if (isLease && one.isWhole && one.granted !== undefined && until !== undefined) {
      const excessMs = until - one.confirmedUntil;
      const what = `it was believed for ${excessMs.toFixed(3)} ms longer than its grant and its renewals allow`;
      this.#check('belief-in-time', excessMs <= ROUNDING_MS, one, what, one.granted, line);
    }
    this.#check(
      'renewal-lost',
      one.lost === undefined,
      one,
      'it was believed after a renewal had found it lost',
      one.lost,
      line,
    );
    this.#checkToken(line, given.token, one);
    if (given.mode !== undefined)
      one.mode = given.mode.kind === 'shared' && one.downgrade ? one.mode : given.mode;
    one.believed ??= line;
    one.lastBelieved = line;
  }

  #entry(line: LineOf<'enters' | 'leaves'>, one: TracedAcquisition): void {
    const { step, client, within, scope } = line.event;
    const key = `${client} ${one.id} ${within}`;
    const active = this.#entries.get(key);
    if (step === 'leaves') return void (active?.event.scope === scope && this.#entries.delete(key));
    this.#check('entries', active === undefined, one, 'a re-entry began beside another one', active, line);
    this.#check('belief-ended', one.end === undefined, one, 'it was entered after its end', one.end, line);
    this.#entries.set(key, line);
  }

  #checkToken(line: PlacedLine, token: string | undefined, one: TracedAcquisition): void {
    if (token === undefined) return;
    const { token: before } = one;
    one.token ??= token;
    if (before === undefined) return;
    this.#check(
      'token-kept',
      before === token,
      one,
      `its token was ${before}, and then ${token}`,
      one.granted,
      line,
    );
  }

  #acquisition(
    resource: TracedResource,
    { id = '', mode = EXCLUSIVE, name }: TraceAcquisition,
    client: TracedClient,
    isFirst: boolean,
  ): TracedAcquisition {
    let one = resource.acquisitions.get(id);
    if (one === undefined) {
      const isWhole = isFirst && !this.#process.isIncomplete;
      one = newAcquisition({ name, id, mode, client, process: this.#process, isWhole });
      resource.acquisitions.set(id, one);
      this.#acquisitions.add(one);
    }
    return one;
  }

  #check(
    rule: TraceRule,
    holds: boolean,
    one: TracedAcquisition,
    what: string,
    ...lines: readonly (PlacedLine | undefined)[]
  ): void {
    checkAcquisition(this.#book, rule, holds, one, what, ...lines);
  }
}
