import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const page = new URL('../../../docs/backends/redis-protocol.md', import.meta.url);
const scripts = new URL('../src/scripts/', import.meta.url);

useRedis();

it('the example of docs/backends/redis-protocol.md is what a server answers', async () => {
  const steps = stepsOf(readFileSync(page, 'utf8'));
  expect(steps.length).toBeGreaterThan(15);
  const known = new Map<string, string>();
  for (const { command, reply } of steps) {
    const [name = '', ...args] = fill(command, known)
      .split(' ')
      .map((word) => (word === '""' ? '' : word));
    const answer =
      name === name.toUpperCase()
        ? await redis.command(name, ...args)
        : await redis.command('EVAL', textOf(`${name}.lua`), ...args);
    const found = JSON.stringify(answer);
    const match = new RegExp(`^${patternOf(fill(reply, known))}$`).exec(found);
    expect(match, `${command}\nanswered ${found}`).not.toBeNull();
    // The time that is left differs from reply to reply.
    for (const [word, value] of Object.entries(match?.groups ?? {}))
      if (word !== 'LEFT') known.set(word, value);
  }
});

/** The lines of the example, two a step. */
function stepsOf(markdown: string): { command: string; reply: string }[] {
  const example = /^## A lock from hand to hand$[\s\S]*?^```\n([\s\S]*?)^```$/m.exec(markdown)?.[1] ?? '';
  return [...example.matchAll(/^> (.*)\n(.*)$/gm)].map(([, command = '', reply = '']) => ({
    command,
    reply,
  }));
}

/** With every word whose number is known already. */
function fill(text: string, known: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\b[A-Z]{4,}\b/g, (word) => known.get(word) ?? word);
}

/** A word in capitals stands for a number; where it comes twice, for the same one, except for LEFT. */
function patternOf(reply: string): string {
  const seen = new Set<string>();
  return reply.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(/\b[A-Z]{4,}\b/g, (word) => {
    if (seen.has(word)) return word === 'LEFT' ? '\\d+' : `\\k<${word}>`;
    seen.add(word);
    return `(?<${word}>\\d+)`;
  });
}

function textOf(file: string): string {
  return readFileSync(new URL(file, scripts), 'utf8').replaceAll(/^@include (\S+)$/gm, (_, name: string) =>
    textOf(`fragments/${name}.lua`),
  );
}
