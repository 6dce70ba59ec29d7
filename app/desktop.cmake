# SPDX-License-Identifier: Apache-2.0
# The window: bv_app is everything but main_desktop.cpp, so that tests can link it.
find_package(Qt6 6.4 REQUIRED COMPONENTS Core Gui Widgets Svg DBus)
pkg_check_modules(MD4C REQUIRED IMPORTED_TARGET md4c)

add_library(bv_app STATIC
  application.cpp
  bridge/agent_controller.cpp
  bridge/error_text.cpp
  bridge/event_bridge.cpp
  bridge/model_service.cpp
  bridge/repository_service.cpp
  bridge/task_queue.cpp
  bridge/text.cpp
  desktop_backend.cpp
  desktop_main.cpp
  desktop_settings.cpp
  models/repository_model.cpp
  models/repository_skipped_model.cpp
  models/session_list_model.cpp
  models/transcript_model.cpp
  models/transcript_text.cpp
  startup_probe.cpp
  theme/highlighter.cpp
  theme/markdown.cpp
  theme/markdown_builder.cpp
  theme/source_document.cpp
  theme/system_scheme.cpp
  theme/theme.cpp
  views/accessible.cpp
  views/accessible_code.cpp
  views/accessible_transcript.cpp
  views/block_layout.cpp
  views/code_view.cpp
  views/composer.cpp
  views/context_meter.cpp
  views/drag_scroll.cpp
  views/empty_page.cpp
  views/first_run_page.cpp
  views/main_window.cpp
  views/model_picker.cpp
  views/notice_area.cpp
  views/permission_card.cpp
  views/repository_panel.cpp
  views/repository_picker.cpp
  views/row_layout.cpp
  views/row_painter.cpp
  views/session_panel.cpp
  views/settings_dialog.cpp
  views/source_view.cpp
  views/transcript_rows.cpp
  views/transcript_selection.cpp
  views/transcript_view.cpp
  ${CMAKE_SOURCE_DIR}/resources/app.qrc)
set_target_properties(bv_app PROPERTIES AUTOMOC ON AUTORCC ON)
target_compile_definitions(bv_app PUBLIC QT_NO_CAST_FROM_ASCII QT_NO_KEYWORDS QT_NO_FOREACH)
target_link_libraries(bv_app
  PUBLIC bv_headless bv_base nlohmann_json::nlohmann_json Qt6::Widgets Qt6::DBus
  PRIVATE bv_flags Qt6::Svg PkgConfig::MD4C)

add_executable(belvedere-desktop main_desktop.cpp)
target_link_libraries(belvedere-desktop PRIVATE bv_app)
