import type { AcquireRequest, Grant } from '@locks/core/backend';
import type { ResourceKeys } from './keys.ts';

/** A grant that remembers its keys, so that renewals and the release need not compute them again. */
export class RedisGrant implements Grant {
  readonly request: AcquireRequest;
  readonly fencingToken: bigint;
  readonly countedFrom: number;
  readonly validForMs: number;
  readonly keys: ResourceKeys;
  /** A downgrade of it was sent, and perhaps not answered. */
  mayBeShared = false;

  constructor(
    request: AcquireRequest,
    keys: ResourceKeys,
    token: bigint,
    countedFrom: number,
    validForMs: number,
  ) {
    this.request = request;
    this.keys = keys;
    this.fencingToken = token;
    this.countedFrom = countedFrom;
    this.validForMs = validForMs;
  }
}
