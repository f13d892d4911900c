import { Application } from 'typedoc';
import { expect, it } from 'vitest';
import { readReference } from '../src/reference/read-reference.ts';
import { undocumented } from '../src/reference/undocumented.ts';

it('every public symbol and option of the packages has a sentence, and options have defaults and units', async () => {
  const { project } = await readReference();
  expect(project.children?.length).toBeGreaterThan(20);
  expect(undocumented(project)).toEqual([]);
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
    'fixture: BadOptions has no sentence',
    'fixture: BadOptions.pace has no unit',
    'fixture: BadOptions.ttlMs has no @defaultValue',
    'fixture: BadOptions.ttlMs has no sentence',
    'fixture: bad has no sentence',
  ]);
}, 60_000);
