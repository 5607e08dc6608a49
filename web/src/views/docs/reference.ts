// Shows Swagger UI with the server's OpenAPI description. It sends requests to this server only.
import SwaggerUI, { type LayoutProps, type System } from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import { fixAccessibility } from './a11y';
import { own } from './calls';
import './reference.css';

/** Fills an element with the reference. The returned function ends this. */
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

/** Replaces the layout of Swagger UI, which has a second <main> and repeats the version in this page's title. */
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
