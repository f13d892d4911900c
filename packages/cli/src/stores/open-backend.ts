import type { LockBackend } from '@locks/core/backend';
import type { Diagnosis } from '@locks/core/doctor';
import type { SlotStore } from '@locks/once';
import type { StoreUrl } from '../store-url.ts';

/** A backend with the client that was opened for it. */
export interface OpenBackend {
  readonly backend: LockBackend;
  readonly openSlots: () => Promise<SlotStore>;
  /** Closes the client that was opened for the backend. */
  readonly closeClient?: () => unknown;
  /** The last error of the connection, where the client reports it apart from the calls. */
  readonly connectionError?: () => Error | undefined;
  /** Opens the backend that must serve the store instead, if there is one. Called once the store has answered. */
  readonly instead?: () => Promise<OpenBackend | undefined>;
  /** The examination of the adapter. */
  readonly examine: () => Promise<Diagnosis>;
}

export type OpenStore = (url: StoreUrl, prefix: string | undefined) => Promise<OpenBackend>;
