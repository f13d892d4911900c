import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import type { Step, StepResult } from '../step.ts';
import { resultOf } from '../step.ts';

let built: Promise<StepResult> | undefined;

/** What `npm run site` does; it needs npm packages only. */
const buildSiteStep: Step = {
  name: 'site',
  about: 'the website is built, and none of its links or anchors leads nowhere',
  kind: 'static',
  run: () => (built ??= run('npm run site', 'site/src/main.ts')),
};

/** Without Chromium, which the installer brings where it may, the step is reported as not run. */
const browserStep: Step = {
  name: 'site:browser',
  about:
    'the site in Chromium, on a phone and a desk, in both themes: accessibility, width, scripts, and what answers',
  kind: 'static',
  async run(context) {
    const installed = await runCommand(process.execPath, [
      join(root, 'test-servers/install.mjs'),
      'chromium',
    ]);
    if (!installed.ok) return { passed: 0, failed: 0, output: installed.output.trim(), notRun: true };
    const site = await buildSiteStep.run(context);
    if (site.failed > 0) return { passed: 0, failed: 1, output: 'the site was not built' };
    return run('Chromium', 'site/src/browser-check/main.ts');
  },
};

export const siteSteps: readonly Step[] = [buildSiteStep, browserStep];

async function run(name: string, file: string): Promise<StepResult> {
  const { ok, output, stdout } = await runCommand(process.execPath, [join(root, file)]);
  const last = stdout.trim().split('\n').at(-1) ?? '';
  return resultOf([{ name, problem: ok ? undefined : output }], ok ? [last] : []);
}
