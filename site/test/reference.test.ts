import { Application } from 'typedoc';
import { expect, it } from 'vitest';
import { readReference } from '../src/reference/read-reference.ts';
import { silentThrows } from '../src/reference/silent-throws.ts';
import { undocumented } from '../src/reference/undocumented.ts';

it('every public symbol, method and option of the packages has a sentence, options have defaults and units, and what fails says with what', async () => {
  const { project } = await readReference();
  expect(project.children?.length).toBeGreaterThan(20);
  expect(undocumented(project)).toEqual([]);
  expect(silentThrows(project)).toEqual([]);
}, 120_000);

it('finds a function that throws and does not say what', async () => {
  const { project } = await readReference();
  const core = project.children?.find(({ name }) => name === '@locks/core');
  const signature = core?.children?.find(({ name }) => name === 'locked')?.signatures?.[0];
  const { comment } = signature ?? {};
  if (comment === undefined) throw new Error('`locked` has no documentation');
  comment.blockTags = comment.blockTags.filter(({ tag }) => tag !== '@throws');
  expect(silentThrows(project)).toEqual(['@locks/core: locked throws, and does not say what']);
}, 120_000);

it('names what is missing', async () => {
  const application = await Application.bootstrap({
    entryPoints: ['test/fixtures/undocumented.d.ts'],
    tsconfig: 'tsconfig.json',
    skipErrorChecking: true,
    logLevel: 'None',
  });
  const project = await application.convert();
  if (project === undefined) throw new Error('TypeDoc could not read the fixture');
  // One entry point alone has no module around it.
  const module = { name: 'fixture', children: project.children };
  expect(undocumented({ children: [module] } as unknown as typeof project).toSorted()).toEqual([
    'fixture: Bad has no sentence',
    'fixture: Bad.member has no sentence',
    'fixture: BadOptions has no sentence',
    'fixture: BadOptions.pace has no unit',
    'fixture: BadOptions.ttlMs has no @defaultValue',
    'fixture: BadOptions.ttlMs has no sentence',
    'fixture: UnionOptions.hidden has no sentence',
    'fixture: bad has no sentence',
    'fixture: late does not say with what it rejects',
    'fixture: vague names no code of its LockError',
  ]);
}, 60_000);
