import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { runVitest } from '../vitest-run.ts';

/** Without Chromium, which the installer brings where it may, the step is reported as not run. */
export const boardStep: Step = {
  name: 'board',
  about: 'the page of `locks board` in Chromium',
  kind: 'timed',
  needs: ['redis'],
  async run({ testArguments }) {
    const installer = join(root, 'test-servers/install.mjs');
    const installed = await runCommand(process.execPath, [installer, 'chromium']);
    if (!installed.ok) return { passed: 0, failed: 0, output: installed.output.trim(), notRun: true };
    return runVitest(join(root, 'packages/cli'), ['--dir=browser', ...testArguments]);
  },
};
