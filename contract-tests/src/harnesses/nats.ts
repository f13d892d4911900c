import { natsHarness } from './nats/nats-harness.ts';

/** NATS with JetStream, one server. */
export default natsHarness(import.meta.url, 'standalone');
