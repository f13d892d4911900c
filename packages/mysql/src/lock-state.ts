import type { LockMode } from '@locks/core/backend';

/** A hold as a row tells it. Times are microseconds of the server's clock since 1970. */
export interface Hold {
  readonly id: string;
  mode: LockMode;
  readonly label?: string;
  readonly token: number;
  /** `undefined`: since the write that makes it. */
  since: number | undefined;
  /** `undefined`: `span` after the write that makes it, or, without `span`, not known here. */
  until: number | undefined;
  span: number | undefined;
  /** The client that was given it and has not yet said so. */
  unclaimedBy?: string;
  /** It robbed those whose tokens are lower. */
  readonly thief?: true;
}

/** A place in the queue of a resource. */
export interface Place {
  readonly id: string;
  mode: LockMode;
  readonly label?: string;
  /** The backend object that waits: its heartbeat is the place's life. */
  readonly client: string;
  readonly ttl: number;
  since: number | undefined;
}

/** Who holds a resource and who waits for it. */
export interface LockState {
  /** Changes with every write and never comes back: what a write must find to be allowed. 0: there is no row. */
  readonly version: number;
  /** The highest that was minted. */
  readonly token: number;
  readonly holds: readonly Hold[];
  readonly places: readonly Place[];
}

interface HoldJson {
  readonly id: string;
  readonly mode: string;
  readonly token?: number;
  readonly since?: number;
  readonly until?: number;
  readonly span?: number;
  readonly by?: string;
  readonly thief?: true;
  readonly label?: string;
}

interface PlaceJson {
  readonly id: string;
  readonly mode: string;
  readonly by: string;
  readonly ttl: number;
  readonly since?: number;
  readonly label?: string;
}

export const absent: LockState = { version: 0, token: 0, holds: [], places: [] };

/**
 * The state as it stands in the row. What counts from the write itself is left out, or relative (`span`): the server puts
 * the time of the write into the column `at`.
 */
export function encodeState(holds: readonly Hold[], places: readonly Place[]): Buffer {
  if (holds.length + places.length === 0) return Buffer.alloc(0);
  return Buffer.from(JSON.stringify({ holds: holds.map(holdJson), places: places.map(placeJson) }));
}

/** The state of a resource that this hold alone has. The token is the one that the row's column gets. */
export function encodeSole(id: string, mode: LockMode, label: string | undefined, span: number): Buffer {
  const hold: HoldJson = { id, mode: modeText(mode), span, ...labelled(label) };
  return Buffer.from(JSON.stringify({ holds: [hold], places: [] }));
}

export function decodeState(version: number, token: number, at: number, state: Buffer): LockState {
  if (state.length === 0) return { version, token, holds: [], places: [] };
  const { holds, places } = JSON.parse(state.toString('utf8')) as { holds: HoldJson[]; places: PlaceJson[] };
  return {
    version,
    token,
    holds: holds.map((json) => ({
      id: json.id,
      mode: modeOf(json.mode),
      token: json.token ?? token,
      since: json.since ?? at,
      until: json.until ?? at + (json.span ?? 0),
      span: undefined,
      ...labelled(json.label),
      ...(json.by === undefined ? undefined : { unclaimedBy: json.by }),
      ...(json.thief && { thief: true }),
    })),
    places: places.map((json) => ({
      id: json.id,
      mode: modeOf(json.mode),
      client: json.by,
      ttl: json.ttl,
      since: json.since ?? at,
      ...labelled(json.label),
    })),
  };
}

function holdJson(hold: Hold): HoldJson {
  return {
    id: hold.id,
    mode: modeText(hold.mode),
    token: hold.token,
    ...(hold.since === undefined ? undefined : { since: hold.since }),
    ...(hold.span === undefined ? { until: hold.until as number } : { span: hold.span }),
    ...(hold.unclaimedBy === undefined ? undefined : { by: hold.unclaimedBy }),
    ...(hold.thief && { thief: true }),
    ...labelled(hold.label),
  };
}

function placeJson({ id, mode, client, ttl, since, label }: Place): PlaceJson {
  return {
    id,
    mode: modeText(mode),
    by: client,
    ttl,
    ...(since === undefined ? undefined : { since }),
    ...labelled(label),
  };
}

function labelled(label: string | undefined): { label: string } | undefined {
  return label === undefined ? undefined : { label };
}

function modeText(mode: LockMode): string {
  return mode.kind === 'permit' ? `${mode.weight}/${mode.limit}` : mode.kind;
}

function modeOf(text: string): LockMode {
  if (text === 'exclusive' || text === 'shared') return { kind: text };
  const [weight, limit] = text.split('/');
  return { kind: 'permit', limit: Number(limit), weight: Number(weight) };
}
