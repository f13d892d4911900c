import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { problemOf, runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

const folder = join(root, 'packages/opentelemetry');

/** Without Prometheus, which the installer brings where it may, the step is reported as not run. */
export const alertsStep: Step = {
  name: 'alerts',
  about: 'the alerts of packages/opentelemetry fire when they should, by promtool of Prometheus',
  kind: 'static',
  async run() {
    const installer = join(root, 'test-servers/install.mjs');
    const installed = await runCommand(process.execPath, [installer, 'prometheus']);
    if (!installed.ok) return { passed: 0, failed: 0, output: installed.output.trim(), notRun: true };
    const checks = [
      ['generated/alerts.yml', ['check', 'rules', 'generated/alerts.yml']],
      ['test/alerts.test.yml', ['test', 'rules', 'test/alerts.test.yml']],
    ] as const;
    return resultOf(
      await Promise.all(
        checks.map(async ([name, args]) => ({
          name,
          problem: await problemOf('promtool', [...args], { cwd: folder }),
        })),
      ),
    );
  },
};
