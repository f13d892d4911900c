// Writes the public interface of every entry point into a folder: node scripts/checks/api-reports.ts FOLDER
// `api-extractor run` takes one entry point at a time: 23.8 s of processor time for all, against 3.5 s here, where one compiler program has
// all of them. What they share, the types of Node and of core above all, is read once.
import { CompilerState, Extractor, ExtractorConfig, type ExtractorLogLevel } from '@microsoft/api-extractor';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { publishedPackages } from './workspace.ts';

const reportFolder = resolve(process.argv[2] ?? '');
// Remarks are written into the report, where a reviewer sees a new one.
const inReport = { logLevel: 'warning' as ExtractorLogLevel, addToApiReportFile: true };
const none = { logLevel: 'none' as ExtractorLogLevel };

/** `core.api.md`, `core.backend.api.md` */
const configs = publishedPackages.flatMap(({ folder, shortName, manifest }) =>
  Object.entries(manifest.exports ?? {}).flatMap(([path, target]) => {
    if (typeof target === 'string') return [];
    const name = [shortName, ...path.split('/').slice(1)].join('.');
    return [configOf(folder, `${name}.api.md`, join(folder, target.default.replace(/\.js$/, '.d.ts')))];
  }),
);
mkdirSync(reportFolder, { recursive: true });
const [first, ...others] = configs;
const additionalEntryPoints = others.map((config) => config.mainEntryPointFilePath);
const compilerState = CompilerState.create(first as ExtractorConfig, { additionalEntryPoints });
for (const config of configs)
  Extractor.invoke(config, {
    localBuild: true,
    compilerState,
    messageCallback(message) {
      message.handled = true;
      const isProblem = /^(error|warning)$/.test(message.logLevel);
      // That a report is new or differs is none.
      if (!isProblem || message.messageId.startsWith('console-api-report')) return;
      console.error(`${config.reportFilePath}: ${message.text}`);
      process.exitCode = 1;
    },
  });

function configOf(folder: string, reportFileName: string, typesFile: string): ExtractorConfig {
  return ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(folder, 'package.json'),
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: typesFile,
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            target: 'es2022',
            lib: ['es2023', 'esnext.disposable'],
            module: 'nodenext',
            types: ['node'],
            strict: true,
            skipLibCheck: true,
          },
          include: [typesFile],
        },
      },
      apiReport: { enabled: true, reportFolder, reportTempFolder: join(tmpdir(), 'api'), reportFileName },
      newlineKind: 'lf',
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        extractorMessageReporting: {
          default: inReport,
          // The packages are one product: every export is public, without a tag on each.
          'ae-missing-release-tag': none,
          'ae-undocumented': none,
        },
        tsdocMessageReporting: { default: inReport },
        compilerMessageReporting: { default: { logLevel: 'warning' as ExtractorLogLevel } },
      },
    },
  });
}
