export { natsBackend } from './nats-backend.ts';
export type { NatsBackendOptions } from './options.ts';
export { natsSlots, natsResults } from './slot-store.ts';
