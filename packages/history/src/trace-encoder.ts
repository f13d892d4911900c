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
  readonly acquisition?: ProtocolAcquisition;
  readonly acquisitions?: readonly ProtocolAcquisition[];
  readonly outcomes?: readonly ProtocolOutcome[];
  readonly until?: number;
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
  /** Names as JSON. */
  #names = new Map<string, string>();

  constructor(store: string | undefined, shownName: (name: string) => string) {
    this.#store = store;
    this.#shownName = shownName;
  }

  begin(process: string, machine: string, time: number, wall: number): string {
    return line({ step: 'begin', version: 1, process, machine, time: rounded(time), wall });
  }

  clock(time: number, wall: number): string {
    return line({ step: 'clock', time: rounded(time), wall });
  }

  dropped(time: number, lines: number): string {
    return line({ step: 'dropped', time: rounded(time), lines });
  }

  end(time: number): string {
    return line({ step: 'end', time: rounded(time) });
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
    text += `{"step":"${message.step}","time":${rounded(time)},"client":${known.number},"at":${rounded(at)}`;
    for (const name in message) {
      if (name === 'step' || name === 'client' || name === 'at') continue;
      const value = message[name as keyof ProtocolMessage] as unknown;
      if (value !== undefined) text += this.#property(name, value);
    }
    const { until } = message;
    if (until !== undefined && Number.isFinite(until))
      text += `,"endsAt":${rounded(endsAt ?? until + known.offset)}`;
    return `${text}}\n`;
  }

  #client(time: number, { backend, capabilities }: ProtocolMessage['client'], client: number): string {
    const store = this.#store ?? backend;
    return line({ step: 'client', time: rounded(time), client, backend, store, capabilities });
  }

  #property(name: string, value: unknown): string {
    switch (name) {
      case 'acquisition':
        return `,"acquisition":${this.#acquisition(value as ProtocolAcquisition)}`;
      case 'acquisitions':
        return `,"acquisitions":[${(value as ProtocolAcquisition[]).map((one) => this.#acquisition(one)).join()}]`;
      case 'outcomes':
        return `,"outcomes":[${(value as ProtocolOutcome[]).map(outcome).join()}]`;
      default:
        if (typeof value === 'number') return Number.isFinite(value) ? `,"${name}":${rounded(value)}` : '';
        return `,"${name}":${JSON.stringify(value)}`;
    }
  }

  #acquisition({
    name,
    acquisitionId,
    mode,
    ttlMs,
    fencingToken,
    steal,
    adopts,
  }: ProtocolAcquisition): string {
    let text = `{"name":${this.#name(name)}`;
    if (acquisitionId !== undefined) text += `,"id":${JSON.stringify(acquisitionId)}`;
    if (mode !== undefined) text += `,"mode":${JSON.stringify(mode)}`;
    if (ttlMs !== undefined) text += `,"ttlMs":${ttlMs}`;
    if (fencingToken !== undefined) text += `,"token":"${fencingToken}"`;
    if (steal === true) text += ',"steal":true';
    if (adopts !== undefined) text += `,"adopts":${JSON.stringify(adopts)}`;
    return `${text}}`;
  }

  #name(name: string): string {
    let text = this.#names.get(name);
    if (text === undefined) {
      if (this.#names.size >= MOST_NAMES) this.#names = new Map();
      this.#names.set(name, (text = JSON.stringify(this.#shownName(name))));
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
  let text = `{"status":${JSON.stringify(status)}`;
  if (reason !== undefined) text += `,"reason":${JSON.stringify(reason)}`;
  if (fencingToken !== undefined) text += `,"token":"${fencingToken}"`;
  if (countedFrom !== undefined) text += `,"countedFrom":${rounded(countedFrom)}`;
  if (validForMs !== undefined) text += `,"validForMs":${rounded(validForMs)}`;
  if (acquisitionId !== undefined) text += `,"id":${JSON.stringify(acquisitionId)}`;
  return `${text}}`;
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

/** Microseconds are enough, and short. */
function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
