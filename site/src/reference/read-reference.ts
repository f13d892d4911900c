import { join } from 'node:path';
import { Application, type ProjectReflection } from 'typedoc';
import { root, siteFolder } from '../repository.ts';
import { readEntryPoints } from './entry-points.ts';

export interface Reference {
  readonly application: Application;
  readonly project: ProjectReflection;
}

/** The public interface of all packages, read from their built types: what users' editors show. */
export async function readReference(): Promise<Reference> {
  const entryPoints = readEntryPoints();
  const application = await Application.bootstrapWithPlugins({
    entryPoints: entryPoints.map(({ types }) => join(root, types)),
    plugin: ['typedoc-plugin-markdown'],
    tsconfig: join(siteFolder, 'tsconfig.reference.json'),
    basePath: root,
    displayBasePath: root,
    // The step `types` has compiled the packages.
    skipErrorChecking: true,
    disableSources: true,
    disableGit: true,
    excludePrivate: true,
    excludeInternal: true,
    // The members that an error has of `Error`.
    excludeExternals: true,
    readme: 'none',
    logLevel: 'Error',
    validation: false,
    sort: ['source-order'],
    groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', 'Variables'],
  });
  // Options of typedoc-plugin-markdown, which TypeDoc's own types do not have.
  const markdown: Readonly<Record<string, unknown>> = {
    router: 'member',
    entryFileName: 'index.md',
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    expandObjects: false,
    // A page of an entry point says what each of its symbols is.
    indexFormat: 'table',
    pageTitleTemplates: { index: '{projectName}', module: '{name}', member: '{name}' },
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    typeDeclarationFormat: 'table',
    tableColumnSettings: { hideSources: true, hideOverrides: true, hideInherited: true },
    sanitizeComments: true,
  };
  for (const [name, value] of Object.entries(markdown))
    application.options.setValue(name as never, value as never);
  const project = await application.convert();
  if (project === undefined)
    throw new Error('TypeDoc could not read the types of the packages: were they built?');
  // An entry point has the name by which it is imported.
  for (const entryPoint of entryPoints) {
    const folder = entryPoint.types.replace(/\/index\.d\.ts$|\.d\.ts$/, '');
    const module = project.children?.find(({ name }) => name === folder);
    if (module === undefined) throw new Error(`TypeDoc has no module ${folder}`);
    module.name = entryPoint.name;
  }
  project.name = 'API reference';
  return { application, project };
}
