import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import 'swagger-ui-dist/swagger-ui.css';
import './reader.css';

/** Draws the description of /v2 into an element. Nothing is loaded from, or told to, anybody else. */
export function show(element: Element): void {
  SwaggerUI({
    domNode: element,
    url: '/openapi.json',
    validatorUrl: null,
    docExpansion: 'none',
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    persistAuthorization: false,
    tryItOutEnabled: true,
  });
}
