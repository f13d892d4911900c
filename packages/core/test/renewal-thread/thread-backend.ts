import { setTimeout as delay } from 'node:timers/promises';
import type { RenewalStatus } from '../../src/backend/types.ts';
import { block } from './block.ts';
import { capabilities, held, scriptedBackend } from '../scripted-backend.ts';

/** The backend that the thread has: its store answers each renewal as the query of the module's URL says. */
const query = new URL(import.meta.url).searchParams;
if (query.has('startMs')) await delay(Number(query.get('startMs')));
if (query.has('throws')) throw new Error('thrown on purpose');

export default () =>
  scriptedBackend({
    name: query.get('name') ?? 'scripted',
    capabilities: { ...capabilities, renewal: 'any-client' },
    async renew(items): Promise<readonly RenewalStatus[]> {
      if (query.has('hangs')) block(Number.POSITIVE_INFINITY);
      if (query.has('answerMs')) await delay(Number(query.get('answerMs')));
      if (query.has('unknown'))
        return items.map(() => ({ status: 'unknown', error: new Error('no answer') }));
      if (query.has('lost')) return items.map(() => ({ status: 'lost', reason: 'taken-over' }));
      const keptMs = Number(query.get('keptMs'));
      return keptMs > 0 ? items.map(() => ({ status: 'held', validForMs: keptMs })) : held(items);
    },
  });
