import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hostPath } from '../launcher/environment.mjs';
import { root } from '../launcher/root.mjs';
import { must } from './command.ts';
import { packedPackages } from './packed.ts';
import { requiredPeers, type WorkspacePackage } from './workspace.ts';

/** What the examples of the documents import besides, and the types of what they use. */
const documentPackages = {
  '@types/node': '^24.0.0',
  '@types/pg': '^8.15.0',
  // The drivers of @locks/postgres: an application installs one of them.
  pg: '^8.23.1',
  postgres: '^3.4.9',
  '@electric-sql/pglite': '^0.5.16',
  // The connection of @locks/nats.
  '@nats-io/transport-node': '^3.4.0',
  // For the examples in docs/nestjs.md.
  '@nestjs/testing': '^12.1.1',
  // Of the examples in docs/telemetry.md.
  '@opentelemetry/exporter-prometheus': '^0.301.0',
  '@opentelemetry/sdk-metrics': '^3.1.1',
  // Of the examples in docs/nestjs.md and docs/guides/transfer.md.
  '@nestjs/schedule': '^12.0.2',
  bullmq: '^6.7.0',
};

let made: Promise<string> | undefined;

/**
 * An application outside of the workspace that has installed the packed packages with npm, as a user would.
 * Made once in a run; the files of scripts/consumer/ are in it.
 */
export function consumerFolder(): Promise<string> {
  made ??= makeConsumer();
  return made;
}

async function makeConsumer(): Promise<string> {
  const packages = await packedPackages();
  const folder = mkdtempSync(join(tmpdir(), 'consumer-'));
  cpSync(join(root, 'scripts/consumer'), folder, { recursive: true });
  const manifest = consumerManifest(({ tarball }) => `file:${tarball}`, packages, documentPackages);
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  const args = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  await must('npm', args, { cwd: folder, env: { ...process.env, PATH: hostPath() }, limitMs: 120_000 });
  return folder;
}

/** What an application of the tests depends on: our packages from where `from` says, and all that these ask for. */
export function consumerManifest<T extends WorkspacePackage>(
  from: (one: T) => string,
  packages: readonly T[],
  more: Readonly<Record<string, string>> = {},
): object {
  const dependencies = {
    ...Object.fromEntries(packages.flatMap(requiredPeers)),
    ...more,
    ...Object.fromEntries(packages.map((one) => [one.manifest.name, from(one)])),
  };
  return { name: 'consumer', version: '1.0.0', private: true, type: 'module', dependencies };
}
