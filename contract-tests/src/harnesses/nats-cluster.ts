import { natsHarness } from './nats/nats-harness.ts';

/** NATS with JetStream, a cluster of three. */
export default natsHarness(import.meta.url, 'cluster');
