import type { TraceCapabilities } from './trace-line.ts';

interface ProtocolAcquisition {
  readonly name: string;
  readonly acquisitionId?: string | undefined;
  readonly mode?: object | undefined;
  readonly ttlMs?: number | undefined;
  readonly fencingToken?: bigint | undefined;
  readonly steal?: true | undefined;
  readonly adopts?: string | undefined;
}

interface ProtocolOutcome {
  readonly status: string;
  readonly reason?: string | undefined;
  readonly fencingToken?: bigint | undefined;
  readonly countedFrom?: number | undefined;
  readonly validForMs?: number | undefined;
  readonly acquisitionId?: string | undefined;
}

/** A message of `locks:protocol`: the shape is that of `ProtocolEvent` of `@locks/core`. */
export interface ProtocolMessage {
  readonly step: string;
  readonly client: { readonly backend: string; readonly capabilities: TraceCapabilities };
  readonly at: number;
  readonly call?: number;
  readonly method?: string;
  readonly acquisitions?: readonly ProtocolAcquisition[];
  readonly enqueue?: boolean;
  readonly outcomes?: readonly ProtocolOutcome[];
  readonly acquisition?: ProtocolAcquisition;
  readonly why?: string;
  readonly until?: number;
  readonly renews?: boolean;
  readonly scope?: number;
  readonly within?: number;
}

interface KnownClient {
  readonly number: number;
  /** The smallest difference seen between the shared clock and the manager's: between the two readings the process may stand still. */
  offset: number;
}

const MOST_NAMES = 1_000;

/** Makes lines of a trace out of the messages of core. */
export class TraceEncoder {
  readonly #store: string | undefined;
  readonly #shownName: (name: string) => string;
  readonly #clients = new Map<object, KnownClient>();
  #last: ProtocolAcquisition = { name: '' };
  #lastText = '';
  readonly #modes = new WeakMap<object, string>();
  /** Names as JSON. */
  #names = new Map<string, string>();

  constructor(store: string | undefined, shownName: (name: string) => string) {
    this.#store = store;
    this.#shownName = shownName;
  }

  begin(process: string, machine: string, time: number, wall: number): string {
    return line({ step: 'begin', version: 1, process, machine, time, wall });
  }

  clock(time: number, wall: number): string {
    return line({ step: 'clock', time, wall });
  }

  dropped(time: number, lines: number): string {
    return line({ step: 'dropped', time, lines });
  }

  end(time: number): string {
    return line({ step: 'end', time });
  }

  /** @param endsAt - the time of `until` on the shared clock, where it is known better than from the clocks of the message */
  line(time: number, message: ProtocolMessage, endsAt?: number): string {
    const { client, at } = message;
    let text = '';
    let known = this.#clients.get(client);
    if (known === undefined) {
      known = { number: this.#clients.size + 1, offset: Number.POSITIVE_INFINITY };
      this.#clients.set(client, known);
      text = this.#client(time, client, known.number);
    }
    // A wall clock that is set forward moves the manager's clock forward, never back: the difference only gets smaller.
    known.offset = Math.min(known.offset, time - at);
    text += `{"step":"${message.step}","time":${decimal(time)},"client":${known.number},"at":${decimal(at)}`;
    const { call, method, acquisitions, acquisition, enqueue, outcomes, why, until, renews, scope, within } =
      message;
    if (call !== undefined) text += `,"call":${call}`;
    if (method !== undefined) text += `,"method":"${method}"`;
    if (acquisitions !== undefined)
      text += `,"acquisitions":[${acquisitions.length === 1 ? this.#acquisition(acquisitions[0] as ProtocolAcquisition) : acquisitions.map((one) => this.#acquisition(one)).join()}]`;
    if (enqueue !== undefined) text += `,"enqueue":${enqueue}`;
    if (outcomes !== undefined)
      text += `,"outcomes":[${outcomes.length === 1 ? outcome(outcomes[0] as ProtocolOutcome) : outcomes.map(outcome).join()}]`;
    if (acquisition !== undefined) text += `,"acquisition":${this.#acquisition(acquisition)}`;
    if (why !== undefined) text += `,"why":"${why}"`;
    if (renews !== undefined) text += `,"renews":${renews}`;
    if (scope !== undefined) text += `,"scope":${scope},"within":${within}`;
    if (until !== undefined && Number.isFinite(until))
      text += `,"until":${decimal(until)},"endsAt":${decimal(endsAt ?? until + known.offset)}`;
    return `${text}}\n`;
  }

  #client(time: number, { backend, capabilities }: ProtocolMessage['client'], client: number): string {
    const store = this.#store ?? backend;
    return line({ step: 'client', time, client, backend, store, capabilities });
  }

  /** The events of one acquisition follow each other, most often. */
  #acquisition(one: ProtocolAcquisition): string {
    const { name, acquisitionId, mode, ttlMs, fencingToken, steal, adopts } = one;
    const last = this.#last;
    if (
      acquisitionId !== undefined &&
      last.acquisitionId === acquisitionId &&
      last.name === name &&
      last.fencingToken === fencingToken &&
      last.mode === mode &&
      last.ttlMs === ttlMs &&
      last.adopts === adopts
    )
      return this.#lastText;
    let text = `{"name":${this.#name(name)}`;
    if (acquisitionId !== undefined) text += `,"id":${quoted(acquisitionId)}`;
    if (mode !== undefined) text += `,"mode":${this.#mode(mode)}`;
    if (ttlMs !== undefined) text += `,"ttlMs":${ttlMs}`;
    if (fencingToken !== undefined) text += `,"token":"${fencingToken}"`;
    if (steal === true) text += ',"steal":true';
    if (adopts !== undefined) text += `,"adopts":${quoted(adopts)}`;
    this.#last = one;
    return (this.#lastText = `${text}}`);
  }

  /** The locks of a program have few modes, each an object of its own. */
  #mode(mode: object): string {
    let text = this.#modes.get(mode);
    if (text === undefined) this.#modes.set(mode, (text = JSON.stringify(mode)));
    return text;
  }

  #name(name: string): string {
    let text = this.#names.get(name);
    if (text === undefined) {
      if (this.#names.size >= MOST_NAMES) this.#names = new Map();
      this.#names.set(name, (text = ascii(this.#shownName(name))));
    }
    return text;
  }
}

function outcome({
  status,
  reason,
  fencingToken,
  countedFrom,
  validForMs,
  acquisitionId,
}: ProtocolOutcome): string {
  if (status === 'none') return '{"status":"none"}';
  let text = `{"status":${quoted(status)}`;
  if (reason !== undefined) text += `,"reason":${quoted(reason)}`;
  if (fencingToken !== undefined) text += `,"token":"${fencingToken}"`;
  if (Number.isFinite(countedFrom)) text += `,"countedFrom":${decimal(countedFrom as number)}`;
  if (Number.isFinite(validForMs)) text += `,"validForMs":${decimal(validForMs as number)}`;
  if (acquisitionId !== undefined) text += `,"id":${quoted(acquisitionId)}`;
  return `${text}}`;
}

function line(value: object): string {
  return `${ascii(value)}\n`;
}

/** JSON whose characters are bytes: such a text is written without being encoded. */
function ascii(value: unknown): string {
  const code = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replaceAll(/[^\x20-\x7e]/g, code);
}

/** Ids and words need no escapes, and most often are all there is. */
function quoted(text: string): string {
  return /^[\w-]*$/.test(text) ? `"${text}"` : ascii(text);
}

/** Microseconds are enough; whole numbers become a text faster than fractions do. */
function decimal(ms: number): string {
  const micros = Math.round(Math.abs(ms) * 1_000);
  const rest = micros % 1_000;
  const zeros = rest < 10 ? '00' : rest < 100 ? '0' : '';
  return `${ms < 0 ? '-' : ''}${(micros - rest) / 1_000}.${zeros}${rest}`;
}
