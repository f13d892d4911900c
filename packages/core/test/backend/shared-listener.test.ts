import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { shareListener } from '../../src/backend/shared-listener.ts';

it('is one listener for all, each of which ends alone', () => {
  const client = new EventEmitter();
  const heard: string[] = [];
  const note = (text: string): void => void heard.push(text);
  const ends = Array.from({ length: 12 }, () => shareListener(client, 'event', note));
  expect(client.listenerCount('event')).toBe(1);
  client.emit('event', 'a');
  expect(heard).toHaveLength(12);
  const [first, ...others] = ends;
  first?.();
  first?.();
  client.emit('event', 'b');
  expect(heard).toHaveLength(23);
  for (const end of others) end();
  expect(client.listenerCount('event')).toBe(0);
  const again = shareListener(client, 'event', note);
  client.emit('event', 'c');
  expect(heard.at(-1)).toBe('c');
  again();
  expect(client.eventNames()).toEqual([]);
});
