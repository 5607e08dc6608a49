// Swagger UI over the server's own description, in our colours. It asks nobody but this server.
import SwaggerUI, { type LayoutProps, type System } from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import { fixAccessibility } from './a11y';
import { own } from './calls';
import './reference.css';

/** Fills an element with the reference, until what it returns is called. */
export function show(place: Element): () => void {
  const stop = fixAccessibility(place);
  SwaggerUI({
    domNode: place,
    url: '/openapi.json',
    presets: [SwaggerUI.presets.apis],
    plugins: [layout],
    layout: 'Reference',
    validatorUrl: null,
    docExpansion: 'list',
    defaultModelsExpandDepth: 0,
    defaultModelExpandDepth: 3,
    displayRequestDuration: true,
    filter: true,
    tryItOutEnabled: true,
    syntaxHighlight: { activated: false },
    requestInterceptor: (call) => own(call, location.origin),
  });
  return stop;
}

/** The layout: Swagger UI's has a second <main>, and a version, which this page's title has already. */
function layout({ React }: System) {
  const parts = (props: LayoutProps) => (name: string) => React.createElement(props.getComponent(name, true));
  return {
    components: {
      Reference(props: LayoutProps) {
        const part = parts(props);
        const status = props.specSelectors.loadingStatus();
        const root = (...children: unknown[]) =>
          React.createElement('div', { className: 'swagger-ui reference' }, ...children);
        if (status === 'loading') return root(React.createElement('div', { className: 'info', 'aria-busy': true }));
        if (status !== 'success') return root(part('errors'));
        const bar = React.createElement(
          'div',
          { className: 'ask' },
          part('ServersContainer'),
          part('AuthorizeBtnContainer'),
        );
        return root(
          part('SvgAssets'),
          part('errors'),
          part('InfoContainer'),
          bar,
          part('FilterContainer'),
          part('operations'),
          part('Models'),
        );
      },
    },
  };
}
