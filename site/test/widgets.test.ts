import { expect, it } from 'vitest';
import { readRepositoryFile } from '../src/repository.ts';
import { readChoices } from '../src/widgets/choices.ts';

it('reads the five questions, and every backend is left by some answer to each', () => {
  const { questions, backends } = readChoices(readRepositoryFile('docs/choosing-a-backend.md'));
  expect(questions).toHaveLength(5);
  for (const { answers } of questions) {
    const left = new Set(answers.flatMap(({ leaves }) => leaves));
    expect(left).toEqual(new Set(backends.map(({ name }) => name)));
  }
});

it('refuses an answer that names a backend which the document does not describe', () => {
  const text = readRepositoryFile('docs/choosing-a-backend.md').replace(
    'all but memory · SQLite',
    'all but memory · dbm',
  );
  expect(() => readChoices(text)).toThrow('is dbm');
});
