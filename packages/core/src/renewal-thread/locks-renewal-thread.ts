import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { ThreadData } from './messages.ts';
import { serveRenewals } from './serve-renewals.ts';

await serveRenewals(parentPort as MessagePort, workerData as ThreadData, (url) => import(url));
