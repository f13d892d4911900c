import type { ExtractorMessage } from '@microsoft/api-extractor';
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';
import type { WorkspacePackage } from '../workspace.ts';
import { publishedPackages } from '../workspace.ts';

const reportFolder = join(root, 'etc/api');

interface EntryPoint {
  readonly package: WorkspacePackage;
  /** `core.api.md`, `core.backend.api.md` */
  readonly reportFile: string;
  readonly typesFile: string;
}

// Remarks are written into the report, where a reviewer sees a new one.
const inReport = { logLevel: 'warning' as ExtractorLogLevel, addToApiReportFile: true };

/** The public interface of every entry point, in `etc/api/`: a change of it is seen in review. */
export const apiStep: Step = {
  name: 'api',
  about: 'etc/api/*.api.md agree with the packages; `npm run update` renews them',
  kind: 'static',
  // In a process of its own: the compiler would keep this one from all else for seconds.
  async run() {
    const { ok, output, stdout } = await runCommand(process.execPath, [fileURLToPath(import.meta.url)]);
    return resultOf(
      ok ? (JSON.parse(stdout) as ReportCheck[]) : [{ name: 'api-extractor', problem: output }],
    );
  },
};

interface ReportCheck {
  readonly name: string;
  readonly problem?: string | undefined;
}

function checkReports(): ReportCheck[] {
  const entries = entryPoints();
  const stale = readdirSync(reportFolder).filter(
    (file) => !entries.some((entry) => entry.reportFile === file),
  );
  return [
    ...problemsOfReports(entries, false),
    ...stale.map((name) => ({ name, problem: 'no such entry point any more: remove it' })),
  ];
}

/** Writes all reports anew, and returns the problems of the interfaces themselves. */
export function updateReports(): string[] {
  rmSync(reportFolder, { recursive: true, force: true });
  return problemsOfReports(entryPoints(), true).flatMap(({ problem }) => problem ?? []);
}

/** One program of the compiler has all entry points: what they share, the types of Node and of core above all, is read once. */
function problemsOfReports(entries: readonly EntryPoint[], update: boolean): ReportCheck[] {
  const [first, ...others] = entries.filter(({ typesFile }) => existsSync(typesFile));
  const state =
    first &&
    CompilerState.create(configOf(first), { additionalEntryPoints: others.map((other) => other.typesFile) });
  return entries.map((entry) => ({
    name: entry.reportFile,
    problem: problemOfReport(entry, state, update),
  }));
}

function entryPoints(): EntryPoint[] {
  return publishedPackages.flatMap((one) =>
    Object.entries(one.manifest.exports ?? {}).flatMap(([path, target]) => {
      if (typeof target === 'string') return [];
      const name = [one.shortName, ...path.split('/').slice(1)].join('.');
      const typesFile = join(one.folder, target.default.replace(/\.js$/, '.d.ts'));
      return [{ package: one, reportFile: `${name}.api.md`, typesFile }];
    }),
  );
}

function problemOfReport(
  entry: EntryPoint,
  state: CompilerState | undefined,
  update: boolean,
): string | undefined {
  if (state === undefined || !existsSync(entry.typesFile))
    return `${relative(root, entry.typesFile)} was not built`;
  mkdirSync(reportFolder, { recursive: true });
  const config = configOf(entry);
  const problems: string[] = [];
  const result = Extractor.invoke(config, {
    localBuild: update,
    compilerState: state,
    messageCallback: (message: ExtractorMessage) => {
      message.handled = true;
      const isProblem =
        message.logLevel === ExtractorLogLevel.Error || message.logLevel === ExtractorLogLevel.Warning;
      // A report that differs is a problem below, with its difference.
      if (isProblem && !message.messageId.startsWith('console-api-report')) problems.push(message.text);
    },
  });
  if (problems.length > 0) return problems.join('\n');
  if (!update && result.apiReportChanged) return `${differenceTo(config)}\nIf this was meant: npm run update`;
  return undefined;
}

function differenceTo({ reportFilePath, reportTempFilePath }: ExtractorConfig): string {
  if (!existsSync(reportFilePath)) return `${relative(root, reportFilePath)} does not exist.`;
  const args = ['diff', '--no-index', '--no-color', reportFilePath, reportTempFilePath];
  return spawnSync('git', args, { encoding: 'utf8' }).stdout;
}

function configOf({ package: { folder }, reportFile, typesFile }: EntryPoint): ExtractorConfig {
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
      apiReport: {
        enabled: true,
        reportFolder,
        reportTempFolder: join(tmpdir(), 'api'),
        reportFileName: reportFile,
      },
      newlineKind: 'lf',
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        extractorMessageReporting: {
          default: inReport,
          // The packages are one product: every export is public, without a tag on each.
          'ae-missing-release-tag': { logLevel: 'none' as ExtractorLogLevel },
          'ae-undocumented': { logLevel: 'none' as ExtractorLogLevel },
        },
        tsdocMessageReporting: { default: inReport },
        compilerMessageReporting: { default: { logLevel: 'warning' as ExtractorLogLevel } },
      },
    },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(JSON.stringify(checkReports()));
